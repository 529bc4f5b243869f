"""Models of vit-pytorch."""
import torch
from zoo import Model
from vit_pytorch.ats_vit import ViT as AtsViT
from vit_pytorch.cait import CaiT
from vit_pytorch.dino import Dino
from vit_pytorch.na_vit import NaViT
from vit_pytorch.na_vit_nested_tensor import NaViT as NestedNaViT
from vit_pytorch.vit import ViT
from vit_pytorch.vit_nd import ViTND

SIZES = {"image_size": 16, "patch_size": 8, "num_classes": 5, "dim": 16, "heads": 2, "mlp_dim": 16}

def image(): return (torch.randn(2, 3, 16, 16),)
def images(): return ([torch.randn(3, 16, 16), torch.randn(3, 16, 8), torch.randn(3, 8, 16)],)

def dino():
    vit = ViT(**SIZES, depth=2)
    return Dino(vit, image_size=16, hidden_layer="to_latent", projection_hidden_size=16, projection_layers=2, num_classes_K=16)

def vit_nd():
    return ViTND(ndim=2, input_shape=(16, 16), patch_size=(8, 8), num_classes=5, dim=16, depth=1, heads=2, mlp_dim=16, dim_head=8)

MODELS = {
    "ats_vit": Model(lambda: AtsViT(**SIZES, depth=2, max_tokens_per_depth=(4, 2)), image, train=True),
    "cait": Model(lambda: CaiT(**SIZES, depth=2, cls_depth=2, layer_dropout=0.3), image, train=True),
    "dino": Model(dino, image),
    "na_vit": Model(lambda: NaViT(**SIZES, depth=2, dim_head=8), lambda: ([[torch.randn(3, 16, 16), torch.randn(3, 16, 8)], [torch.randn(3, 8, 16)]],), train=True),
    "na_vit_nested_tensor": Model(lambda: NestedNaViT(**SIZES, depth=2, dim_head=8), images),
    "vit_nd": Model(vit_nd, image),
    "vit": Model(lambda: ViT(**SIZES, depth=2), image),
}
