"""Models of vector-quantize-pytorch."""
import torch
from vector_quantize_pytorch import FSQ, LFQ, GroupedResidualVQ, LatentQuantize, RandomProjectionQuantizer, ResidualFSQ, ResidualVQ, SimVQ, VectorQuantize
from zoo import Model

def features(): return (torch.randn(2, 16, 16),)

VQ = {"dim": 16, "codebook_size": 8}

MODELS = {
    "vector_quantize": Model(lambda: VectorQuantize(**VQ), features, train=True),
    "vector_quantize_kmeans": Model(lambda: VectorQuantize(**VQ, kmeans_init=True, kmeans_iters=2, threshold_ema_dead_code=2), features, train=True),
    "vector_quantize_cosine": Model(lambda: VectorQuantize(**VQ, use_cosine_sim=True, threshold_ema_dead_code=2), features, train=True),
    "vector_quantize_orthogonal": Model(lambda: VectorQuantize(**VQ, orthogonal_reg_weight=10, orthogonal_reg_max_codes=4, orthogonal_reg_active_codes_only=True), features, train=True),
    "residual_vq": Model(lambda: ResidualVQ(**VQ, num_quantizers=3), features, train=True),
    "residual_vq_dropout": Model(lambda: ResidualVQ(**VQ, num_quantizers=3, quantize_dropout=True), features, train=True),
    "grouped_residual_vq": Model(lambda: GroupedResidualVQ(**VQ, num_quantizers=2, groups=2), features, train=True),
    "random_projection": Model(lambda: RandomProjectionQuantizer(dim=16, num_codebooks=2, codebook_dim=8, codebook_size=8), features, train=False),
    "fsq": Model(lambda: FSQ([8, 5, 5], dim=16), features, train=True),
    "residual_fsq": Model(lambda: ResidualFSQ(dim=16, levels=[8, 5, 5], num_quantizers=2), features, train=True),
    "lfq": Model(lambda: LFQ(codebook_size=16, dim=16), features, train=True),
    "sim_vq": Model(lambda: SimVQ(dim=16, codebook_size=8), features, train=True),
}
