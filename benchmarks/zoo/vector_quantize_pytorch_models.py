"""Models of vector-quantize-pytorch."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from vector_quantize_pytorch import (
    FSQ,
    LFQ,
    GroupedResidualVQ,
    RandomProjectionQuantizer,
    ResidualFSQ,
    ResidualVQ,
    SimVQ,
    VectorQuantize,
)

from zoo import Model


def features() -> tuple[Tensor]:
    return (torch.randn(2, 16, 16),)


def of(kind: Callable[..., Any], **options: Any) -> Model:
    return Model(lambda: kind(**options), features, train=True)


CODES: dict[str, Any] = {"dim": 16, "codebook_size": 8}

MODELS = {
    "vector_quantize": of(VectorQuantize, **CODES),
    "vector_quantize_kmeans": of(
        VectorQuantize, **CODES, kmeans_init=True, kmeans_iters=2, threshold_ema_dead_code=2
    ),
    "vector_quantize_cosine": of(
        VectorQuantize, **CODES, use_cosine_sim=True, threshold_ema_dead_code=2
    ),
    "vector_quantize_orthogonal": of(
        VectorQuantize,
        **CODES,
        orthogonal_reg_weight=10,
        orthogonal_reg_max_codes=4,
        orthogonal_reg_active_codes_only=True,
    ),
    "residual_vq": of(ResidualVQ, **CODES, num_quantizers=3),
    "residual_vq_dropout": of(ResidualVQ, **CODES, num_quantizers=3, quantize_dropout=True),
    "grouped_residual_vq": of(GroupedResidualVQ, **CODES, num_quantizers=2, groups=2),
    "random_projection": of(
        RandomProjectionQuantizer, dim=16, num_codebooks=2, codebook_dim=8, codebook_size=8
    ),
    "fsq": of(FSQ, levels=[8, 5, 5], dim=16),
    "residual_fsq": of(ResidualFSQ, levels=[8, 5, 5], dim=16, num_quantizers=2),
    "lfq": of(LFQ, dim=16, codebook_size=16),
    "sim_vq": of(SimVQ, **CODES),
}
