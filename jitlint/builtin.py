"""The rules of the engine itself: they have pages and names as any other, and no visitor."""

from jitlint.finding import Severity
from jitlint.rule import Rule

FAMILY = "engine"


class SyntaxErrorRule(Rule):
    """A file that cannot be read as Python.

    ## What it does
    Reports a file that does not parse, that is not in the encoding it declares, that
    contains null bytes or is nested too deeply. The other files are still checked.

    ## Why it matters
    Nothing in such a file is checked, and a compiler that meets it fails as well.

    ## Example
        def forward(self, x:

    ## Use instead
        def forward(self, x):

    ## Fix safety
    There is no fix.
    """

    name = "syntax-error"
    family = FAMILY
    severity = Severity.ERROR


class UnusedIgnore(Rule):
    """A comment that silences nothing.

    ## What it does
    Reports `# jitlint: ignore` comments that match no finding, or that name a rule which
    does not exist. Rules that are not part of the run are left alone.

    ## Why it matters
    The comment hides the next real finding on its line.

    ## Example
        y = x.relu()  # jitlint: ignore[trace-branch]

    ## Use instead
        y = x.relu()

    ## Fix safety
    There is no fix: a comment may have been meant for a line that has moved.
    """

    name = "unused-ignore"
    family = FAMILY
    severity = Severity.WARNING


RULES: dict[str, type[Rule]] = {rule.name: rule for rule in (SyntaxErrorRule, UnusedIgnore)}
