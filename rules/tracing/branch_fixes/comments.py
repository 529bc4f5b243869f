"""Comments of a construct that is rewritten: none of them may be lost."""

from collections import Counter
from collections.abc import Iterator, Mapping

import libcst as cst

from jitlint.finding import Replacement

from .withheld import Withheld


def require_comments(replacements: Mapping[cst.CSTNode, Replacement]) -> None:
    old = Counter(comment for node in replacements for comment in comments_in(node))
    new = Counter(comment for node in replacements.values() for comment in comments_in(node))
    if old - new:
        comment = next(iter(old - new))
        raise Withheld(f"the comment `{comment}` would be lost: move it above the branch")


def comments_in(node: object) -> Iterator[str]:
    if isinstance(node, cst.FlattenSentinel):
        for each in node:
            yield from comments_in(each)
    elif isinstance(node, cst.Comment):
        yield node.value
    elif isinstance(node, cst.CSTNode):
        for child in node.children:
            yield from comments_in(child)


def comment_line(comment: str) -> cst.EmptyLine:
    return cst.EmptyLine(comment=cst.Comment(comment))


def header_of(node: cst.CSTNode) -> cst.TrailingWhitespace | None:
    """What stands behind the colon of the first line."""
    match node:
        case cst.If(body=cst.IndentedBlock(header=header)):
            return header
        case cst.If(body=cst.SimpleStatementSuite(trailing_whitespace=header)):
            return header
        case cst.Match(whitespace_after_colon=header):
            return header
    return None
