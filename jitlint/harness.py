"""Names under which modules keep arguments to call their own code with."""

import re

EXAMPLES = re.compile(r"(?i)_?((example|test|sample)_?)?(args|inputs|examples?|samples?|cases)")
"""Variables that hold one tuple of arguments, or a list of such tuples."""
