"""What operators of torch do to gradients, and when they fail: rows for the arms of a branch."""

import re

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
