"""The models that GraphMend (arXiv 2509.16248) was measured on, as small as they go.

Architectures, dtypes and inputs of its table of 27, from the wheels that carry them. For two
whose code is only in a repository of weights another architecture stands in, which the name
tells: Florence-2's language model is a copy of BART that is given embeddings, and the experts
of MiniCPM are chosen as those of Mixtral. MoLFormer, Qwen-Audio and stella are left out: no
wheel has anything like their breaks.
"""

from collections.abc import Callable
from typing import Any

import torch
import transformers
from chronos.chronos_bolt import ChronosBoltModelForForecasting

from zoo import Model

Inputs = dict[str, Any]


def of(
    name: str,
    inputs: Callable[[], Inputs],
    configuration: Callable[[], Any],
    dtype: torch.dtype = torch.float32,
    edges: tuple[Callable[[], Inputs], ...] = (),
) -> Model:
    """The class of transformers with that name."""

    def build() -> Any:
        return getattr(transformers, name)(configuration()).to(dtype)

    return Model(build, inputs, edges=edges)


def config(name: str, *settings: dict[str, Any], **others: Any) -> Callable[[], Any]:
    merged: dict[str, Any] = {}
    for each in (*settings, others):
        merged |= each
    return lambda: getattr(transformers, f"{name}Config")(**merged)


def ids(length: int = 8) -> torch.Tensor:
    return torch.randint(3, 100, (2, length))


def sentence() -> torch.Tensor:
    """Between the tokens that begin and end a text for BERT."""
    tokens = ids()
    tokens[:, 0], tokens[:, -1] = 101, 102
    return tokens


def text() -> Inputs:
    return {"input_ids": ids()}


def translated() -> Inputs:
    return {"input_ids": ids(), "decoder_input_ids": ids(6)}


def begun() -> Inputs:
    """With a mask, and the one token that starts generation."""
    tokens = ids()
    start = torch.full((2, 1), 2)
    return {
        "input_ids": tokens,
        "attention_mask": torch.ones_like(tokens),
        "decoder_input_ids": start,
    }


def embedded(scale: float = 1.0) -> Inputs:
    embeddings = scale * torch.randn(2, 8, 32, dtype=torch.float16)
    return {"inputs_embeds": embeddings, "decoder_input_ids": ids(6)}


def speech() -> Inputs:
    return {"input_features": torch.randn(2, 8, 64), "decoder_input_ids": ids(6)}


def document() -> Inputs:
    return {"input_ids": ids(), "bbox": torch.zeros(2, 8, 4, dtype=torch.long)}


def caption() -> Inputs:
    return {"input_ids": sentence(), "pixel_values": torch.randn(2, 3, 32, 32)}


def sound_and_text() -> Inputs:
    tokens = ids()
    return {
        "input_ids": tokens,
        "attention_mask": torch.ones_like(tokens),
        "input_features": torch.randn(2, 4, 64, 16),
        "is_longer": torch.ones(2, 1, dtype=torch.bool),
    }


LAYERS = {
    "vocab_size": 128,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 40,
    "max_position_embeddings": 64,
}
HALVES = {
    "vocab_size": 128,
    "d_model": 32,
    "max_position_embeddings": 64,
    **{f"{half}_layers": 2 for half in ("encoder", "decoder")},
    **{f"{half}_attention_heads": 2 for half in ("encoder", "decoder")},
    **{f"{half}_ffn_dim": 40 for half in ("encoder", "decoder")},
}
MARIAN = {**HALVES, "decoder_start_token_id": 2, "pad_token_id": 1}
WHISPER = {
    **HALVES,
    "num_mel_bins": 8,
    "max_source_positions": 32,
    "max_target_positions": 64,
    "decoder_start_token_id": 2,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
T5 = {"vocab_size": 128, "d_model": 32, "d_kv": 16, "d_ff": 40, "num_layers": 2, "num_heads": 2}
GATED = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
LONG_ROPE = {"type": "longrope", "short_factor": [1.0] * 8, "long_factor": [2.0] * 8}


def grounding(queries: int, levels: int) -> Callable[[], Any]:
    stages = [f"stage{number + 1}" for number in range(levels)]

    def build() -> Any:
        return transformers.GroundingDinoConfig(
            backbone_config=transformers.SwinConfig(
                image_size=32,
                patch_size=4,
                embed_dim=16,
                depths=[1] * levels,
                num_heads=[1] * levels,
                window_size=2,
                out_features=stages,
            ),
            text_config=transformers.BertConfig(**LAYERS),
            use_timm_backbone=False,
            d_model=32,
            encoder_layers=1,
            decoder_layers=1,
            encoder_attention_heads=2,
            decoder_attention_heads=2,
            encoder_ffn_dim=40,
            decoder_ffn_dim=40,
            num_queries=queries,
            num_feature_levels=levels,
        )

    return build


def clap() -> Any:
    audio = {
        "hidden_size": 32,
        "patch_embeds_hidden_size": 8,
        "depths": [1, 1, 1],
        "num_attention_heads": [1, 1, 1],
        "num_mel_bins": 16,
        "spec_size": 64,
        "window_size": 2,
        "enable_fusion": True,
        "projection_dim": 16,
    }
    text = {**LAYERS, "projection_dim": 16}
    return transformers.ClapConfig(text_config=text, audio_config=audio, projection_dim=16)


def chronos_bolt() -> Any:
    settings = {
        "context_length": 64,
        "prediction_length": 8,
        "input_patch_size": 8,
        "input_patch_stride": 8,
        "quantiles": [0.1, 0.5, 0.9],
        "use_reg_token": True,
    }
    return ChronosBoltModelForForecasting(
        transformers.T5Config(**T5, chronos_config=settings, decoder_start_token_id=0)
    )


BART = "BartForConditionalGeneration"
MODELS = {
    "t5-small": of("T5ForConditionalGeneration", translated, config("T5", T5)),
    "t5-base": of("T5ForConditionalGeneration", translated, config("T5", T5, num_layers=3)),
    "t5-3b": of("T5ForConditionalGeneration", translated, config("T5", T5, d_kv=32)),
    "flan-t5-large": of("T5ForConditionalGeneration", translated, config("T5", T5, GATED)),
    "inclusively-reformulation-it5": of(
        "T5ForConditionalGeneration", translated, config("T5", T5, GATED, num_layers=3)
    ),
    "whisper": of("WhisperForConditionalGeneration", speech, config("Whisper", WHISPER)),
    "whisper-small": of(
        "WhisperForConditionalGeneration", speech, config("Whisper", WHISPER, encoder_layers=3)
    ),
    "whisper-base": of(
        "WhisperForConditionalGeneration", speech, config("Whisper", WHISPER, d_model=16)
    ),
    "bart": of(BART, begun, config("Bart", HALVES), torch.float16),
    "bart-base": of(BART, begun, config("Bart", HALVES, d_model=16), torch.float16),
    "rebel-large": of(BART, begun, config("Bart", HALVES, encoder_layers=3), torch.float16),
    "opus-mt-fr-en": of("MarianMTModel", begun, config("Marian", MARIAN), torch.float16),
    "biogpt": of("BioGptForCausalLM", text, config("BioGpt", LAYERS)),
    "blenderbot-400M-distill": of(
        "BlenderbotForConditionalGeneration", translated, config("Blenderbot", HALVES)
    ),
    "PegasusForCausalLM": of("PegasusForCausalLM", text, config("Pegasus", HALVES)),
    "layoutlmv3-base": of(
        "LayoutLMv3Model",
        document,
        config(
            "LayoutLMv3",
            LAYERS,
            coordinate_size=4,
            shape_size=8,
            input_size=32,
            patch_size=16,
            visual_embed=False,
        ),
    ),
    "Phi-4-mini-instruct": of(
        "Phi3ForCausalLM",
        text,
        config(
            "Phi3",
            LAYERS,
            pad_token_id=0,
            num_key_value_heads=2,
            original_max_position_embeddings=16,
            rope_scaling=LONG_ROPE,
        ),
    ),
    "grounding-dino": of("GroundingDinoModel", caption, grounding(4, 2)),
    "grounding-dino-base": of("GroundingDinoModel", caption, grounding(6, 3)),
    "longformer-base-4096": of(
        "LongformerModel",
        lambda: {"input_ids": ids(20)},
        config("Longformer", LAYERS, attention_window=8),
    ),
    "clap-htsat-fused": of("ClapModel", sound_and_text, clap),
    "chronos-bolt-small": Model(chronos_bolt, lambda: {"context": torch.randn(2, 64)}),
    "Florence-2 (its BART)": of(
        BART,
        embedded,
        config("Bart", HALVES),
        torch.float16,
        edges=(lambda: embedded(60000.0),),
    ),
    "moe-minicpm-x4-base (as Mixtral)": of(
        "MixtralForCausalLM", text, config("Mixtral", LAYERS, num_key_value_heads=2)
    ),
}
