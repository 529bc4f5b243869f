"""Models of vit-pytorch."""

from typing import Any

import torch
from torch import Tensor
from vit_pytorch.ats_vit import ViT as AdaptiveViT
from vit_pytorch.cait import CaiT
from vit_pytorch.dino import Dino
from vit_pytorch.na_vit import NaViT
from vit_pytorch.na_vit_nested_tensor import NaViT as NestedNaViT
from vit_pytorch.vit import ViT
from vit_pytorch.vit_nd import ViTND

from zoo import Model

SIZES: dict[str, Any] = {"num_classes": 5, "dim": 16, "heads": 2, "mlp_dim": 16}
IMAGE: dict[str, Any] = {**SIZES, "image_size": 16, "patch_size": 8}


def image() -> tuple[Tensor]:
    return (torch.randn(2, 3, 16, 16),)


def without_gradients() -> ViTND:
    """On CPUs its attention has no backward pass."""
    model = ViTND(**SIZES, ndim=2, input_shape=(16, 16), patch_size=(8, 8), depth=1, dim_head=8)
    return model.requires_grad_(False)


def images() -> tuple[list[Tensor]]:
    return ([torch.randn(3, 16, 16), torch.randn(3, 16, 8), torch.randn(3, 8, 16)],)


def batches() -> tuple[list[list[Tensor]]]:
    ((first, second, third),) = images()
    return ([[first, second], [third]],)


def dino() -> Dino:
    return Dino(
        ViT(**IMAGE, depth=2),
        image_size=16,
        hidden_layer="to_latent",
        projection_hidden_size=16,
        projection_layers=2,
        num_classes_K=16,
    )


MODELS = {
    "ats_vit": Model(
        lambda: AdaptiveViT(**IMAGE, depth=2, max_tokens_per_depth=(4, 2)), image, train=True
    ),
    "cait": Model(
        lambda: CaiT(**IMAGE, depth=2, cls_depth=2, layer_dropout=0.3), image, train=True
    ),
    "dino": Model(dino, image),
    "na_vit": Model(lambda: NaViT(**IMAGE, depth=2, dim_head=8), batches, train=True),
    "na_vit_nested_tensor": Model(lambda: NestedNaViT(**IMAGE, depth=2, dim_head=8), images),
    "vit": Model(lambda: ViT(**IMAGE, depth=2), image, train=True),
    "vit_nd": Model(without_gradients, image),
}
