"""Models of timm."""

from typing import Any

import timm
import torch
from torch import Tensor

from zoo import Model


def image(size: int = 32) -> tuple[Tensor]:
    return (torch.randn(2, 3, size, size),)


def of(name: str, **options: Any) -> Any:
    return timm.create_model(name, num_classes=5, **options)


def sequencer() -> Any:
    return of(
        "sequencer2d_s",
        img_size=56,
        layers=[1, 1, 1, 1],
        embed_dims=[16, 32, 32, 32],
        hidden_sizes=[4, 8, 8, 8],
    )


def transformer() -> Any:
    return of("vit_tiny_patch16_224", img_size=32, embed_dim=32, depth=2, num_heads=2)


MODELS = {
    "resnet": Model(lambda: of("resnet10t"), image, train=True),
    "sequencer": Model(sequencer, lambda: image(56)),
    "vit": Model(transformer, image, train=True),
}
