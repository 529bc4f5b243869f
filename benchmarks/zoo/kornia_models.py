"""Models and functions of kornia."""

from typing import Any

import torch
from kornia import augmentation, feature, filters
from kornia.feature.disk import DISK
from kornia.feature.disk._unets import Unet
from kornia.feature.loftr.loftr import LoFTR, default_cfg
from kornia.geometry.calibration.pnp import solve_pnp_dlt
from kornia.geometry.ransac import RANSAC
from torch import Tensor

from zoo import Model

NO_MATCH = 0.5


def image(channels: int = 3, size: int = 32) -> tuple[Tensor]:
    return (torch.rand(2, channels, size, size),)


def flat_image() -> tuple[Tensor]:
    return (torch.zeros(2, 1, 16, 16),)


def pair() -> tuple[dict[str, Tensor]]:
    first = torch.rand(1, 1, 32, 32)
    return ({"image0": first, "image1": first + 0.05 * torch.rand(1, 1, 32, 32)},)


def descriptors() -> tuple[Tensor, Tensor]:
    return torch.rand(6, 8), torch.rand(9, 8)


def correspondences() -> tuple[Tensor, Tensor]:
    points = 100 * torch.rand(40, 2)
    turn = torch.tensor([[0.9, 0.1], [-0.1, 0.9]])
    return points, points @ turn + 5 + 0.1 * torch.rand(40, 2)


def camera() -> tuple[Tensor, Tensor, Tensor]:
    return seen_by_camera(4 * torch.rand(1, 10, 3))


def points_on_a_line() -> tuple[Tensor, Tensor, Tensor]:
    return seen_by_camera(torch.rand(1, 10, 1).expand(1, 10, 3).clone())


def seen_by_camera(world: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    intrinsics = torch.tensor([[[500.0, 0, 250], [0, 500, 250], [0, 0, 1]]])
    projected = (world + torch.tensor([0.1, 0.2, 5.0])) @ intrinsics.mT
    return world, projected[..., :2] / projected[..., 2:], intrinsics


def disk() -> DISK:
    return DISK(desc_dim=8, unet=Unet(in_features=3, size=5, down=[4, 8, 8], up=[8, 9]))


def loftr() -> LoFTR:
    parts: dict[str, dict[str, Any]] = {
        "resnetfpn": {"initial_dim": 16, "block_dims": [16, 24, 32]},
        "coarse": {"d_model": 32, "d_ffn": 32, "nhead": 2, "layer_names": ["self", "cross"]},
        "fine": {"d_model": 16, "d_ffn": 16, "nhead": 2, "layer_names": ["self", "cross"]},
        "match_coarse": {"thr": 0.0, "border_rm": 0},
    }
    config: dict[str, Any] = dict(default_cfg)
    config |= {name: {**default_cfg[name], **part} for name, part in parts.items()}
    return LoFTR(pretrained=None, config=config)


def ransac() -> RANSAC:
    return RANSAC(
        "homography",
        max_iter=1,
        batch_size=32,
        refine_iters=1,
        max_lo_iters=1,
        local_optimization="lm",
    )


MODELS = {
    "color_jiggle": Model(lambda: augmentation.ColorJiggle(0.1, 0.1, 0.1, 0.1, p=1.0), image),
    "color_jitter": Model(lambda: augmentation.ColorJitter(0.1, 0.1, 0.1, 0.1, p=1.0), image),
    "mix_up": Model(lambda: augmentation.RandomMixUpV2(p=0.5, data_keys=["input"]), image),
    "canny": Model(filters.Canny, lambda: image(1, 16), edges=(flat_image,)),
    "disk": Model(disk, lambda: (*image(), 10)),
    "loftr": Model(loftr, pair, gradients=False),
    "match_mnn": Model(lambda: feature.match_mnn, descriptors),
    "match_snn": Model(
        lambda: feature.match_snn,
        lambda: (*descriptors(), 0.95),
        edges=(lambda: (*descriptors(), NO_MATCH),),
    ),
    "solve_pnp": Model(lambda: solve_pnp_dlt, camera, edges=(points_on_a_line,)),
    "ransac_homography": Model(ransac, correspondences, gradients=False),
}
