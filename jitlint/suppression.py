"""Comments that silence findings, and the report of those that silence nothing."""

import enum
import io
import re
import tokenize
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from jitlint import source as sources
from jitlint.builtin import SyntaxErrorRule, UnusedIgnore
from jitlint.finding import Diagnostic, Span
from jitlint.selection import did_you_mean

IGNORE = re.compile(r"#\s*jitlint:\s*ignore\b(?:\s*\[([^\]]*)\])?")
SKIP_FILE = re.compile(r"#\s*jitlint:\s*skip-file\b")
NOQA = re.compile(r"#\s*noqa\b(?!\s*:\s*\S)", re.IGNORECASE)
MARKER = re.compile(rb"jitlint:|noqa", re.IGNORECASE)


class _Kind(enum.Enum):
    IGNORE = "ignore"
    NOQA = "noqa"


@dataclass(slots=True)
class _Comment:
    """`rules` is None when the comment names none, and so silences all."""

    kind: _Kind
    line: int
    column: int
    end_column: int
    own_line: bool
    rules: tuple[str, ...] | None
    used: set[str] = field(default_factory=set)

    def silences(self, rule: str) -> bool:
        return self.rules is None or rule in self.rules


@dataclass(slots=True)
class _Comments:
    """The comments of a file, and the lines of each logical line that spans several."""

    comments: list[_Comment] = field(default_factory=list)
    logical: dict[int, tuple[int, int]] = field(default_factory=dict)
    own_lines: set[int] = field(default_factory=set)
    skip_file: bool = False

    def covering(self, span: Span) -> Iterator[_Comment]:
        """Those on a line of the finding, on the first or last of its logical line, or
        alone on the lines just above one of these starts."""
        first, last = self.logical.get(span.line, (span.line, span.line))
        end = max(span.line, min(span.end_line, last))
        lines = {first, last, *range(span.line, end + 1)}
        above = {*self._above(first), *self._above(span.line)}
        for comment in self.comments:
            stands_above = comment.own_line and comment.kind is _Kind.IGNORE
            if comment.line in (above if stands_above else lines):
                yield comment

    def _above(self, line: int) -> Iterator[int]:
        while line - 1 in self.own_lines:
            line -= 1
            yield line


def apply(
    data: bytes,
    path: str,
    diagnostics: Sequence[Diagnostic],
    active_rules: Collection[str],
    known_rules: Collection[str],
) -> list[Diagnostic]:
    """The diagnostics of one file that no comment silences, and those of idle comments.

    `active_rules` are those that this file was checked with: a comment for another rule
    is not reported.
    """
    if not MARKER.search(data):
        return list(diagnostics)
    comments = _read(data)
    if comments.skip_file:
        return []
    kept = [each for each in diagnostics if not _silenced(each, comments)]
    if UnusedIgnore.name not in active_rules or any(
        each.rule == SyntaxErrorRule.name for each in diagnostics
    ):
        return kept
    for comment in comments.comments:
        kept.extend(_unused(comment, path, active_rules, known_rules))
    return kept


def _silenced(diagnostic: Diagnostic, comments: _Comments) -> bool:
    silenced = False
    for comment in comments.covering(diagnostic.span):
        if comment.silences(diagnostic.rule):
            comment.used.add(diagnostic.rule)
            silenced = True
    return silenced


def _unused(
    comment: _Comment, path: str, active: Collection[str], known: Collection[str]
) -> Iterator[Diagnostic]:
    message = _idle(comment, active, known)
    if message:
        yield Diagnostic(
            path=path,
            span=Span(comment.line, comment.column, comment.line, comment.end_column),
            rule=UnusedIgnore.name,
            family=UnusedIgnore.family,
            severity=UnusedIgnore.severity,
            message=message,
            no_fix_reason="a comment may have been meant for a line that has moved",
        )


def _idle(comment: _Comment, active: Collection[str], known: Collection[str]) -> str:
    if comment.kind is _Kind.NOQA:
        return ""
    if comment.rules is None:
        complete = set(known) <= set(active)
        return "this comment silences nothing" if complete and not comment.used else ""
    if UnusedIgnore.name in comment.rules:
        return ""
    parts = []
    for rule in dict.fromkeys(comment.rules):
        if rule not in known:
            parts.append(f"`{rule}` is not a rule{did_you_mean(rule, sorted(known))}")
        elif rule in active and rule not in comment.used:
            parts.append(f"`{rule}` reports nothing here")
    if not comment.rules:
        parts.append("the list of rules is empty")
    return f"needless comment: {', '.join(parts)}" if parts else ""


def _read(data: bytes) -> _Comments:
    """What can be read of a file, also of one that does not tokenize to its end."""
    result = _Comments()
    try:
        text = sources.decode(data).text
    except sources.UnparsableError:
        return result
    lines = sources.lines_of(text)
    start: int | None = None
    try:
        # Universal newlines: the tokenizer must count lines as the parser does.
        for token in tokenize.generate_tokens(io.StringIO("\n".join(lines)).readline):
            line = token.start[0]
            if token.type == tokenize.COMMENT:
                _note(result, token, lines[line - 1])
            elif token.type == tokenize.NEWLINE:
                if start is not None:
                    _join(result, start, line)
                start = None
            elif token.type not in _LAYOUT and start is None:
                start = line
    except (tokenize.TokenError, SyntaxError):
        pass
    return result


_LAYOUT = frozenset({tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER})


def _join(result: _Comments, first: int, last: int) -> None:
    if last > first:
        for line in range(first, last + 1):
            result.logical[line] = (first, last)


def _note(result: _Comments, token: tokenize.TokenInfo, text: str) -> None:
    line, column = token.start
    own_line = not text[:column].strip()
    if own_line:
        result.own_lines.add(line)
    if SKIP_FILE.search(token.string):
        result.skip_file = True
    rules: tuple[str, ...] | None = None
    if match := IGNORE.search(token.string):
        kind = _Kind.IGNORE
        if match.group(1) is not None:
            rules = tuple(filter(None, (part.strip() for part in match.group(1).split(","))))
    elif match := NOQA.search(token.string):
        kind = _Kind.NOQA
    else:
        return
    start = column + match.start() + 1
    end = column + match.end() + 1
    result.comments.append(_Comment(kind, line, start, end, own_line, rules))
