"""Branches that do nothing."""

import libcst as cst

from jitlint.analysis import scope
from jitlint.finding import Fix, Replacement

from .arms import Branch
from .comments import comment_line
from .emit import conditional_fix
from .hazards import conditions_for
from .predicate import hazards_in, predicate
from .profile import Describer
from .withheld import Withheld


def deletion(describer: Describer, branch: Branch) -> Fix:
    """A branch without effect; its test must be free of effects too."""
    tests: list[cst.CSTNode] = []
    conditions: dict[str, None] = {}
    for case in branch.cases:
        built = predicate(describer, case.test, branch.node, frozenset())
        conditions.update(dict.fromkeys(conditions_for(hazards_in(describer, case.test))))
        conditions.update(dict.fromkeys(built.conditions))
        tests.extend(built.tests)
    replacements = _without(describer, branch)
    return conditional_fix(
        "Delete the branch, which does nothing", conditions, replacements, tests=tests
    )


def _without(describer: Describer, branch: Branch) -> dict[cst.CSTNode, Replacement]:
    """The statement is gone; its comments stand above the next one."""
    comments = [comment for arm in branch.arms for comment in arm.comments]
    if branch.statement is not branch.node:
        raise Withheld("the branch does nothing: delete it")
    block = scope.block_around(branch.statement, describer.module)
    index = next(i for i, each in enumerate(block) if each is branch.node)
    lines = [*getattr(branch.node, "leading_lines", ()), *map(comment_line, comments)]
    has_comments = any(line.comment is not None for line in lines)
    if not has_comments and len(block) > 1:
        return {branch.node: cst.RemoveFromParent()}
    if len(block) == 1:
        return {branch.node: cst.SimpleStatementLine([cst.Pass()], leading_lines=lines)}
    if index + 1 == len(block):
        raise Withheld("the branch does nothing: delete it, and move its comments")
    following = block[index + 1]
    own = getattr(following, "leading_lines", ())
    return {
        branch.node: cst.RemoveFromParent(),
        following: following.with_changes(leading_lines=[*lines, *own]),
    }
