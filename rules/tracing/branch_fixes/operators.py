"""What operators of torch do to gradients, and when they fail: rows for the arms of a branch."""

import re

from .dtypes import Kind

FINITE_GRADIENT = frozenset(
    {
        "abs", "absolute", "ceil", "clamp", "clamp_max", "clamp_min", "clip", "clone",
        "contiguous", "fix", "floor", "fmax", "fmin", "hardtanh", "leaky_relu", "maximum",
        "minimum", "neg", "negative", "positive", "relu", "relu6", "round", "sign", "trunc",
        "add", "sub", "subtract", "rsub", "where", "masked_fill", "flip", "roll", "sum",
        "mean", "view", "reshape", "flatten", "transpose", "permute", "squeeze", "unsqueeze",
        "expand", "expand_as", "t", "float", "double", "half", "bfloat16", "to", "type_as",
        "cat", "stack", "cumsum", "tril", "triu",
    }
)  # fmt: skip
"""Operators that pass a gradient of zero on as zeros, whatever the values (measured with
NaN, infinities and zeros; torch 2.13). All others may turn it into NaN."""

NO_GRADIENT = frozenset(
    {
        "argmax", "argmin", "argsort", "bucketize", "detach", "empty_like", "full_like",
        "new_empty", "new_full", "new_ones", "new_tensor", "new_zeros", "nonzero",
        "ones_like", "searchsorted", "zeros_like",
    }
)  # fmt: skip
"""Operators whose result does not depend differentiably on their arguments."""

OTHER_GRADIENT = frozenset({"prod", "cumprod"})
"""Operators whose gradient is computed by looking at the data, unless it is traced: `prod`
of infinities has NaN for a gradient in one and infinity in the other (measured)."""

OTHER_RESULT = frozenset({"dtype", "out", "memory_format", "device", "layout", "inplace"})
"""Keywords that make an elementwise operator something else."""

COMPLEX_TO_REAL = frozenset({"abs", "absolute", "angle", "imag", "real", "norm"})
FAILS_WHEN_EMPTY = frozenset({"amax", "amin", "aminmax", "argmax", "argmin", "max", "min"})
TAKES_ANY_NUMBER = frozenset({"as_tensor", "asarray", "scalar_tensor", "tensor"})
"""Functions that make a tensor of a number, whatever it is."""
FLOATING_ONLY = frozenset({"mean", "std", "var", "norm", "softmax", "log_softmax", "logsumexp"})
"""Operators that refuse whole numbers."""
RANDOM_METHODS = re.compile(r"bernoulli|multinomial|rand|dropout|rrelu|poisson|normal_?$")

PURE_LAYERS = frozenset(
    f"torch.nn.{name}"
    for name in (
        "Linear", "Bilinear", "Conv1d", "Conv2d", "Conv3d", "LayerNorm", "GroupNorm", "RMSNorm",
        "GELU", "SiLU", "Tanh", "Sigmoid", "Softplus", "Softmax", "LogSoftmax", "AvgPool1d",
        "AvgPool2d", "MaxPool1d", "MaxPool2d", "Embedding",
    )
)  # fmt: skip
"""Layers without state, randomness or aliases of their input."""

NOT_ONLY_A_LAYER = re.compile(
    rb"register_\w*hook|parametriz\w*|spectral_norm|weight_norm|inplace\s*=\s*(?!False)\w+"
    rb"|SiLU\(True|max_norm|return_indices"
)
"""Words that say that a layer has hooks, or changes its input or its weights when called."""

KEEPS_SHAPE = frozenset(
    {
        *("cumprod", "cumsum", "flip", "log_softmax", "logcumsumexp", "normalize", "renorm"),
        *("roll", "softmax", "softmin", "tril", "triu"),
    }
)
"""Operators along a dimension whose result has the shape of their argument."""

WIDENS = frozenset({"sum", "nansum", "prod", "cumsum", "cumprod"})
"""Operators that make int64 of all whole numbers."""

CASTS = frozenset({"to", "type", "type_as", "view", "asarray", "as_tensor"})
"""Operators that may give another dtype, as their arguments say."""

NAMED_CASTS = frozenset(
    {
        *("bfloat16", "bool", "byte", "cdouble", "cfloat", "chalf", "char", "double", "float"),
        *("half", "int", "long", "short"),
    }
)
"""Methods named after the dtype that they give; all else stays."""

DIVIDES = frozenset({"remainder", "fmod", "floor_divide"})
"""Operators that raise for whole numbers and a divisor of 0."""

HAVE_INPLACE = frozenset(
    {
        "celu", "elu", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "mish", "relu",
        "relu6", "selu", "silu", "threshold",
    }
)  # fmt: skip
"""Functions with a parameter `inplace`, which may be given by position."""

NO_BACKWARD = frozenset(
    {"floor_divide", "gammainc", "gammaincc", "heaviside", "igamma", "igammac", "nextafter", "zeta"}
)
"""Operators whose result requires grad, and fails to be differentiated."""

_REFUSALS = {
    Kind.BOOL: """
        abs absolute addcdiv addcmul argmax argmin binary_cross_entropy_with_logits ceil celu
        dist dot elu fix floor frac gammainc gammaincc gelu hardshrink hardsigmoid hardswish
        hardtanh hinge_embedding_loss hypot igamma igammac kl_div leaky_relu lerp logaddexp
        logaddexp2 logsigmoid mean median mish nanmean nanmedian nanquantile neg negative
        nextafter norm positive quantile relu relu6 round rsub selu silu softplus softshrink
        softsign std sub subtract tanhshrink threshold trunc var vdot
    """,
    Kind.COMPLEX: """
        amax amin arctan2 argmax argmin atan2 binary_cross_entropy_with_logits bitwise_and
        bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil celu clamp
        clamp_max clamp_min clip copysign deg2rad digamma elu entr erf erfc erfcx erfinv fix floor
        floor_divide fmax fmin fmod frac gammainc gammaincc gammaln gcd ge gelu greater
        greater_equal gt hardshrink hardsigmoid hardswish hardtanh heaviside hinge_embedding_loss
        hypot i0 i0e i1 i1e igamma igammac isneginf isposinf kl_div lcm le leaky_relu less
        less_equal lgamma log_ndtr logaddexp2 logit logsigmoid lt max maximum median min minimum
        mish nanmean nanmedian nanquantile nansum ndtr ndtri nextafter polygamma psi quantile
        rad2deg relu relu6 remainder round searchsorted selu sign signbit softplus softshrink
        threshold trunc xlog1py xlogy zeta
    """,
    Kind.WHOLE: """
        addcdiv binary_cross_entropy_with_logits celu dist elu frac gammainc gammaincc gelu
        hardshrink hardsigmoid hardswish hypot igamma igammac kl_div leaky_relu lerp logaddexp
        logaddexp2 logsigmoid mean mish nanmean nanquantile nextafter norm quantile selu silu
        softplus softshrink std var softmax log_softmax logsumexp
    """,
    Kind.FLOATING: """
        bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor
        gcd lcm
    """,
}
"""Measured with torch 2.13 on the CPU: which operators raise for which dtypes."""

REFUSED = {
    name: tuple(kind for kind, names in _REFUSALS.items() if name in names.split())
    for name in " ".join(_REFUSALS.values()).split()
}
