"""Models of timm."""
import timm
import torch
from zoo import Model

def image(): return (torch.randn(2, 3, 32, 32),)

def sequencer():
    return timm.create_model("sequencer2d_s", img_size=56, num_classes=5, layers=[1, 1, 1, 1], embed_dims=[16, 32, 32, 32], hidden_sizes=[4, 8, 8, 8])

def vit():
    return timm.create_model("vit_tiny_patch16_224", img_size=32, embed_dim=32, depth=2, num_heads=2, num_classes=5)

MODELS = {
    "sequencer": Model(sequencer, lambda: (torch.randn(1, 3, 56, 56),)),
    "vit": Model(vit, image, train=True),
    "resnet": Model(lambda: timm.create_model("resnet10t", num_classes=5), image, train=True),
}
