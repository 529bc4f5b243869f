"""The rewrites of `shape-pin`, each with its precondition, and why there is none."""

import libcst as cst

from jitlint.analysis.observations import Call, GraphCall, LostShape, SizeUse
from jitlint.finding import Fix
from jitlint.region import RegionKind

Result = tuple[Fix | None, str | None]


def fix_of_size_use(use: SizeUse) -> Result:
    return None, "write `tf.shape(x)[i]`, or -1 in a reshape, where the size is only known later"


def fix_of_loss(lost: LostShape) -> Result:
    return None, "the shape that the Python function returns is not known: pin it behind the call"


def fix_of_call(call: GraphCall, position: int) -> Result:
    if call.kind is RegionKind.XLA:
        return None, "XLA compiles for each concrete shape; only padding to a bucket avoids it"
    return None, "an `input_signature` decides what callers may pass"


def fix_of_discarded(call: Call, statement: cst.Expr) -> Result:
    return None, "the value would then be checked"
