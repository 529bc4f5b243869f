"""Models and functions of kornia."""
import torch
import kornia
from kornia import augmentation, feature
from kornia.feature.disk import DISK
from kornia.feature.disk._unets import Unet
from kornia.feature.loftr.loftr import default_cfg, LoFTR
from kornia.geometry.calibration.pnp import solve_pnp_dlt
from kornia.geometry.ransac import RANSAC
from zoo import Model

def image(channels=3, size=32): return (torch.rand(2, channels, size, size),)

def loftr():
    config = dict(default_cfg)
    config["resnetfpn"] = {"initial_dim": 16, "block_dims": [16, 24, 32]}
    config["coarse"] = {**default_cfg["coarse"], "d_model": 32, "d_ffn": 32, "nhead": 2, "layer_names": ["self", "cross"]}
    config["fine"] = {**default_cfg["fine"], "d_model": 16, "d_ffn": 16, "nhead": 2, "layer_names": ["self", "cross"]}
    config["match_coarse"] = {**default_cfg["match_coarse"], "thr": 0.0, "border_rm": 0}
    return LoFTR(pretrained=None, config=config)

def pair(): 
    first = torch.rand(1, 1, 32, 32)
    return ({"image0": first, "image1": first + 0.05 * torch.rand(1, 1, 32, 32)},)

def correspondences():
    points = 100 * torch.rand(40, 2)
    moved = points @ torch.tensor([[0.9, 0.1], [-0.1, 0.9]]) + 5 + 0.1 * torch.rand(40, 2)
    return (points, moved)

def pnp():
    world = torch.rand(1, 10, 3) * 4
    intrinsics = torch.tensor([[[500.0, 0, 250], [0, 500, 250], [0, 0, 1]]])
    camera = world + torch.tensor([0.1, 0.2, 5.0])
    image = (intrinsics @ camera.mT).mT
    return (world, image[..., :2] / image[..., 2:], intrinsics)

MODELS = {
    "color_jiggle": Model(lambda: augmentation.ColorJiggle(0.1, 0.1, 0.1, 0.1, p=1.0), image),
    "color_jitter": Model(lambda: augmentation.ColorJitter(0.1, 0.1, 0.1, 0.1, p=1.0), image),
    "mix_up": Model(lambda: augmentation.RandomMixUpV2(p=1.0, data_keys=["input"]), image),
    "canny": Model(lambda: kornia.filters.Canny(), lambda: image(1, 16)),
    "disk": Model(lambda: DISK(desc_dim=8, unet=Unet(in_features=3, size=5, down=[4, 8, 8], up=[8, 9])), lambda: (torch.rand(2, 3, 32, 32), 10)),
    "loftr": Model(loftr, pair, gradients=False),
    "match_mnn": Model(lambda: feature.match_mnn, lambda: (torch.rand(6, 8), torch.rand(9, 8))),
    "match_snn": Model(lambda: feature.match_snn, lambda: (torch.rand(6, 8), torch.rand(9, 8), 0.95)),
    "solve_pnp": Model(lambda: solve_pnp_dlt, pnp),
    "ransac_homography": Model(lambda: RANSAC("homography", max_iter=1, batch_size=32, refine_iters=1, max_lo_iters=1, local_optimization="lm"), correspondences, gradients=False),
}
