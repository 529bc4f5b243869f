"""Models of transformers, with configurations as small as they go."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
import transformers

from zoo import Model

Inputs = dict[str, Any]
IMAGE, VIDEO, START, END = 40, 41, 42, 43
"""Tokens; the vocabulary is of 50."""


def of(
    name: str,
    inputs: Callable[[], Inputs],
    *configurations: Mapping[str, Any],
    train: bool = False,
    **options: Any,
) -> Model:
    """The base model of that name; later configurations win."""
    merged: dict[str, Any] = {}
    for each in (*configurations, options):
        merged |= each

    def build() -> Any:
        config = getattr(transformers, f"{name}Config")(**merged)
        return getattr(transformers, f"{name}Model")(config)

    return Model(build, inputs, train)


def tokens(length: int = 16) -> Inputs:
    ids = torch.randint(3, IMAGE, (2, length))
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def waves() -> Inputs:
    return {"input_values": torch.randn(2, 1024)}


def filterbanks() -> Inputs:
    return {"input_features": torch.randn(2, 24, 16)}


def frames() -> Inputs:
    return {"input_values": torch.randn(1, 1, 960)}


def with_lengths() -> Inputs:
    return {"input_ids": torch.randint(3, IMAGE, (2, 12)), "lengths": torch.tensor([12, 9])}


def in_languages() -> Inputs:
    return {**tokens(), "lang_ids": torch.tensor([0, 1])}


def translated() -> Inputs:
    return {**tokens(), "decoder_input_ids": torch.randint(3, IMAGE, (2, 6))}


def with_global_tokens(*numbers: int, length: int = 16) -> Inputs:
    """Each sequence with so many tokens of global attention."""
    mask = torch.tensor([[1] * number + [0] * (length - number) for number in numbers])
    return {**tokens(length), "global_attention_mask": mask}


def scene(types: bool = True) -> Inputs:
    """A text with two images in it, as patches of four by four pixels."""
    grid = torch.tensor([[1, 4, 4], [1, 4, 8]])
    ids, kinds = [3, 4], [0, 0]
    for count in (grid.prod(1) // 4).tolist():
        ids += [START, *[IMAGE] * count, END, 5]
        kinds += [0, *[1] * count, 0, 0]
    inputs = {
        "input_ids": torch.tensor([ids]),
        "attention_mask": torch.ones(1, len(ids), dtype=torch.long),
        "pixel_values": torch.randn(int(grid.prod(1).sum()), 48),
        "image_grid_thw": grid,
    }
    return {**inputs, "mm_token_type_ids": torch.tensor([kinds])} if types else inputs


def padded_images() -> Inputs:
    """Two texts with two images and one: the place of the fourth is padding."""
    pixels = torch.randn(2, 2, 3, 16, 16)
    pixels[1, 1] = 0
    inputs = tokens(10)
    inputs["input_ids"][0, 1:5] = IMAGE
    inputs["input_ids"][1, 1:3] = IMAGE
    return {**inputs, "pixel_values": pixels}


LAYERS = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
BERT = {**LAYERS, "intermediate_size": 20, "vocab_size": 50, "max_position_embeddings": 64}
SPEECH = {
    **LAYERS,
    "intermediate_size": 20,
    "vocab_size": 50,
    "layerdrop": 0.2,
    "mask_time_length": 2,
    "mask_time_prob": 0.2,
}
WAVES = {
    **SPEECH,
    "conv_dim": (16, 16),
    "conv_stride": (4, 4),
    "conv_kernel": (8, 8),
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 4,
    "num_conv_pos_embedding_groups": 2,
    "feat_extract_norm": "layer",
}
PARTS = ("encoder", "decoder", "speech_encoder", "t2u_encoder", "t2u_decoder")
SEAMLESS = {
    "vocab_size": 50,
    "t2u_vocab_size": 50,
    "hidden_size": 16,
    "max_position_embeddings": 64,
    "max_source_positions": 64,
    "feature_projection_input_dim": 16,
    "speech_encoder_intermediate_size": 20,
    "num_conv_pos_embeddings": 4,
    "num_conv_pos_embedding_groups": 2,
    "position_embeddings_type": "relative",
    "unit_hifi_gan_vocab_size": 50,
    "unit_embed_dim": 16,
    "lang_embed_dim": 16,
    "spkr_embed_dim": 16,
    "upsample_initial_channel": 32,
    **{f"{part}_layers": 1 for part in PARTS},
    **{f"{part}_attention_heads": 2 for part in PARTS},
    **{f"{part}_ffn_dim": 20 for part in PARTS if part != "speech_encoder"},
}
MIMI = {
    **LAYERS,
    "intermediate_size": 20,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "sliding_window": 16,
    "num_filters": 4,
    "upsampling_ratios": [4, 2],
    "upsample_groups": 4,
    "codebook_size": 16,
    "codebook_dim": 16,
    "vector_quantization_hidden_dimension": 16,
    "num_quantizers": 4,
}
FASTSPEECH = {
    "vocab_size": 50,
    "hidden_size": 16,
    "num_mel_bins": 8,
    "speech_decoder_postnet_layers": 2,
    "speech_decoder_postnet_units": 16,
    "pitch_predictor_layers": 2,
    "duration_predictor_layers": 1,
    **{f"{part}_predictor_channels": 16 for part in ("duration", "energy", "pitch")},
    **{f"{part}_layers": 1 for part in ("encoder", "decoder")},
    **{f"{part}_num_attention_heads": 2 for part in ("encoder", "decoder")},
    **{f"{part}_linear_units": 16 for part in ("encoder", "decoder")},
}
TEXT = {
    "vocab_size": 50,
    "hidden_size": 32,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
ROPE = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 1, 1]}
PATCHES = {"hidden_size": 32, "intermediate_size": 20, "patch_size": 4, "spatial_merge_size": 2}
QWEN = {"depth": 2, "num_heads": 2, "temporal_patch_size": 1, "out_hidden_size": 32}
QWEN3 = {**PATCHES, **QWEN, "deepstack_visual_indexes": [0], "num_position_embeddings": 16}
TOKENS = {
    "image_token_id": IMAGE,
    "video_token_id": VIDEO,
    "vision_start_token_id": START,
    "vision_end_token_id": END,
}


def seeing(name: str, text: Mapping[str, Any], vision: Mapping[str, Any], **options: Any) -> Model:
    return of(
        name, scene, TOKENS, text_config={**TEXT, **text}, vision_config=dict(vision), **options
    )


MODELS = {
    "bert": of("Bert", tokens, BERT, train=True),
    "llama": of("Llama", tokens, TEXT),
    "longformer": of("Longformer", tokens, BERT, train=True, attention_window=4),
    "longformer_global": of(
        "Longformer",
        lambda: with_global_tokens(1, 2, length=15),
        BERT,
        train=True,
        attention_window=4,
    ),
    "longformer_first": of(
        "Longformer", lambda: with_global_tokens(1, 1), BERT, train=True, attention_window=4
    ),
    "ctrl": of(
        "CTRL", tokens, vocab_size=50, n_positions=64, n_embd=16, dff=20, n_layer=2, n_head=2
    ),
    "flaubert": of(
        "Flaubert", with_lengths, train=True, emb_dim=16, n_layers=2, n_heads=2, n_words=50
    ),
    "xmod": of("Xmod", in_languages, BERT, languages=("en_XX", "de_DE")),
    "hubert": of("Hubert", waves, WAVES, train=True),
    "unispeech": of("UniSpeech", waves, WAVES, train=True),
    "unispeech_sat": of("UniSpeechSat", waves, WAVES, train=True),
    "wav2vec2": of("Wav2Vec2", waves, WAVES, train=True),
    "wav2vec2_bert": of(
        "Wav2Vec2Bert", filterbanks, SPEECH, train=True, feature_projection_input_dim=16
    ),
    "wav2vec2_conformer": of("Wav2Vec2Conformer", waves, WAVES, train=True),
    "wavlm": of("WavLM", waves, WAVES, train=True),
    "mimi": of("Mimi", frames, MIMI),
    "fastspeech2_conformer": of("FastSpeech2Conformer", lambda: tokens(8), FASTSPEECH),
    "seamless_m4t": of("SeamlessM4T", translated, SEAMLESS),
    "seamless_m4t_v2": of("SeamlessM4Tv2", translated, SEAMLESS),
    "qwen2_vl": seeing(
        "Qwen2VL",
        {"rope_parameters": ROPE},
        {
            "depth": 2,
            "num_heads": 2,
            "patch_size": 4,
            "temporal_patch_size": 1,
            "embed_dim": 32,
            "hidden_size": 32,
            "mlp_ratio": 2,
        },
    ),
    "qwen2_5_vl": seeing(
        "Qwen2_5_VL",
        {"rope_parameters": ROPE},
        {**PATCHES, **QWEN, "window_size": 16, "fullatt_block_indexes": [1]},
    ),
    "qwen3_vl": seeing("Qwen3VL", {"rope_parameters": ROPE, "head_dim": 8}, QWEN3),
    "cosmos3_omni": seeing(
        "Cosmos3Omni",
        {"model_type": "qwen3_vl_text", "rope_parameters": ROPE, "head_dim": 8},
        {"model_type": "qwen3_vl_vision", **QWEN3},
    ),
    "cosmos3_edge": seeing(
        "Cosmos3Edge",
        {"rope_parameters": ROPE, "head_dim": 8},
        {**PATCHES, "num_hidden_layers": 2, "num_attention_heads": 2, "num_patches": 16},
        projector_hidden_size=32,
    ),
    "cohere_compass": seeing(
        "CohereCompass",
        {"rope_parameters": {"full_attention": {**ROPE, "mrope_interleaved": True}}},
        QWEN3,
    ),
    "minimax_m3_vl": of(
        "MiniMaxM3VL",
        lambda: scene(types=False),
        image_token_index=IMAGE,
        video_token_index=VIDEO,
        projector_hidden_size=32,
        text_config={
            **TEXT,
            "head_dim": 8,
            "rotary_dim": 4,
            "dense_intermediate_size": 20,
            "shared_intermediate_size": 20,
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
            "mlp_layer_types": ["dense", "sparse"],
        },
        vision_config={
            **PATCHES,
            "temporal_patch_size": 1,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
        },
    ),
    "idefics2": of(
        "Idefics2",
        padded_images,
        image_token_id=IMAGE,
        text_config={**TEXT, "model_type": "mistral"},
        vision_config={**LAYERS, "intermediate_size": 20, "image_size": 16, "patch_size": 8},
        perceiver_config={
            "hidden_size": 32,
            "resampler_n_latents": 2,
            "resampler_depth": 1,
            "resampler_n_heads": 2,
            "resampler_head_dim": 8,
            "num_key_value_heads": 1,
        },
    ),
}
