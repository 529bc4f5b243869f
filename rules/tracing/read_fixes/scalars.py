"""`x.sum().item()` that goes back into tensor arithmetic: the number stays a tensor."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from jitlint.analysis import scope
from jitlint.analysis.observations import Operation
from jitlint.analysis.tree import found_in
from jitlint.analysis.values import Function
from jitlint.finding import Fix
from jitlint.rule import Context

from ..branch_fixes.arms import parenthesized
from ..branch_fixes.dtypes import BOOL, Proven, known
from ..branch_fixes.effects import writes_in_place
from ..branch_fixes.emit import conditional_fix
from ..branch_fixes.profile import Describer, floating_in
from ..branch_fixes.withheld import NotMine
from .flow import Flow
from .places import kept, roots
from .promotion import Category, Kept, meet
from .reads import Conversion, Read, read_of
from .rewriting import Edits, method


def kept_as_tensor(operation: Operation, ctx: Context) -> Fix:
    """The tensor itself takes the part of the number that is read from it."""
    read = read_of(operation.node, operation)
    if read is None:
        raise NotMine
    at = scope.statement_of(read.node, ctx.module)
    describer = Describer(operation, at)
    edits = Edits(ctx.module)
    flow = Flow(operation, describer, edits)
    flow.start(read)
    return _Removal(operation, describer, flow).fix()


DTYPES = {Conversion.INT: "int64", Conversion.BOOL: "bool"}
"""Of what a conversion makes, as a tensor."""

Step = tuple[str, tuple[cst.BaseExpression, ...]]
"""A method and its arguments."""

FIXERS: tuple[Callable[[Operation, Context], Fix], ...] = (kept_as_tensor,)


@dataclass(eq=False)
class _Removal:
    """The numbers of a flow, on their way to stay tensors."""

    operation: Operation
    describer: Describer
    flow: Flow

    def fix(self) -> Fix:
        cast = self._meetings()
        for read in self.flow.reads:
            self._check(read)
            self._edit(read, cast)
        self.flow.finish()
        names = "`, `".join(dict.fromkeys(self._code(each.tensor) for each in self.flow.reads))
        what = "tensors" if len(self.flow.reads) > 1 else "a tensor"
        spelling = scope.Spelling(self.operation.module, self.operation.node)
        return conditional_fix(
            f"Keep `{names}` {what}",
            self.flow.conditions,
            dict(self.flow.edits.replacements()),
            spelling.imports() if cast else (),
        )

    # -- what is known ---------------------------------------------------------------------

    @cached_property
    def proven(self) -> Proven:
        """A mean, say, was taken of a floating tensor."""
        found: set[str] = set()
        for read in self.flow.reads:
            for call in found_in(read.tensor, cst.Call):
                found |= floating_in(self.describer, call)
        return Proven(frozenset(), frozenset(found))

    def category(self, read: Read) -> Category:
        found = kept(self.describer, read.tensor).category(self.proven)
        if read.conversion is Conversion.INT:
            return Category.WHOLE
        if read.conversion is Conversion.BOOL and not self.flow.computes:
            return Category.BOOL
        if read.conversion is Conversion.FLOAT or self.flow.floats:
            return Category.FLOATING
        if self.flow.is_open and found is not Category.FLOATING:
            return Category.OPEN
        if self.flow.computes and found is Category.BOOL:
            return Category.WHOLE
        return found

    def _is_wide(self, read: Read) -> bool:
        """Whether the tensor is made float64: then Python's arithmetic is the same."""
        category = self.category(read)
        if category is Category.FLOATING:
            own = kept(self.describer, read.tensor).category(self.proven)
            return self.flow.computes or own in (Category.WHOLE, Category.BOOL)
        return self.flow.computes and category in (Category.OPEN, Category.UNKNOWN)

    # -- conditions ------------------------------------------------------------------------

    def _meetings(self) -> bool:
        """Whether the numbers have to be cast to the default dtype."""
        casts: set[bool] = set()
        for read in self.flow.reads:
            number = kept(self.describer, read.tensor)
            if read.conversion in DTYPES:
                number = Kept(number.code, known(DTYPES[read.conversion]))
            for encounter in self.flow.encounters:
                partner = kept(self.describer, encounter.partner)
                self._require_device(read, encounter.partner)
                if encounter.promotes:
                    found = meet(
                        number, self.category(read), partner, self.proven, self._is_wide(read)
                    )
                    self._require(*found.conditions)
                    casts.add(found.cast)
        if casts == {True, False}:
            raise NotMine
        return True in casts

    def _require(self, *conditions: str) -> None:
        self.flow.conditions.update(dict.fromkeys(conditions))

    def _require_device(self, read: Read, partner: cst.BaseExpression) -> None:
        """A number goes with a tensor of any device."""
        own, other = (roots(self.describer, each) for each in (read.tensor, partner))
        if not own & other:
            names = f"`{self._code(read.tensor)}` and `{self._code(partner)}`"
            self._require(f"{names} are on one device")

    def _check(self, read: Read) -> None:
        own = kept(self.describer, read.tensor).category(self.proven)
        if read.conversion is Conversion.INT and own not in (Category.WHOLE, Category.BOOL):
            self._require(f"`{self._code(read.tensor)}` is finite")
        if (
            read.conversion is Conversion.FLOAT
            and own is Category.UNKNOWN
            and not self._is_wide(read)
        ):
            self._require(f"`{self._code(read.tensor)}` is floating")

    # -- the new code ----------------------------------------------------------------------

    def _edit(self, read: Read, cast: bool) -> None:
        steps = list(self._steps(read, cast))
        is_method = read.conversion is Conversion.NONE

        def tensor(new: cst.BaseExpression) -> cst.BaseExpression:
            call = cst.ensure_type(new, cst.Call)
            inner = call.args[0].value if not is_method else _receiver(call)
            result = parenthesized(inner) if steps else inner
            for name, arguments in steps:
                result = method(result, name, *arguments)
            return result if steps or is_method else parenthesized(result)

        self.flow.edits.add(read.node, tensor)

    def _steps(self, read: Read, cast: bool) -> Iterator[Step]:
        """The methods that make of the tensor what the number was."""
        tensor = kept(self.describer, read.tensor)
        profile = tensor.profile
        if profile is None or profile.sources:
            yield "detach", ()
        if (profile is None or not profile.fresh) and self._may_change():
            yield "clone", ()
        if tensor.rank != 0:
            yield "reshape", (cst.Tuple([]),)
        if read.conversion is Conversion.BOOL and tensor.dtype != BOOL:
            yield "bool", ()
        is_int = read.conversion is Conversion.INT
        if is_int and not tensor.is_int64:
            yield "long", ()
        if cast:
            default = scope.Spelling(self.operation.module, self.operation.node).of(
                "get_default_dtype"
            )
            yield "to", (cst.Call(default),)
        elif self._is_wide(read):
            yield "double", ()
        elif self._outgrows(tensor) and not is_int:
            yield "long", ()

    def _outgrows(self, tensor: Kept) -> bool:
        """Whether Python computes with larger whole numbers than the tensor may hold."""
        is_whole = tensor.category(self.proven) in (Category.WHOLE, Category.BOOL)
        return self.flow.computes and is_whole and not tensor.is_int64

    def _may_change(self) -> bool:
        """Whether something may write into the tensor before the number is used."""
        if len(self.flow.statements) == 1:
            return False
        function = scope.function_of(self.describer.at, self.describer.module)
        if function is None or writes_in_place(function):
            return True
        return any(self._is_foreign(call) for call in found_in(function, cst.Call))

    def _is_foreign(self, call: cst.Call) -> bool:
        value = self.operation.value_of(call.func)
        return isinstance(value, Function)

    def _code(self, node: cst.CSTNode) -> str:
        return " ".join(self.describer.code(node).split())


def _receiver(call: cst.Call) -> cst.BaseExpression:
    return cst.ensure_type(call.func, cst.Attribute).value
