"""The models of a public study of breaks (transformers 5.4.0), as small as they go.

Those whose sites in `data/transformers-torch-2.10.json` jitlint offers fixes for. Rates of
LayerDrop are the defaults of the configurations, as in the study, but for models of speech,
which have them set.
"""

from typing import Any

import torch
import transformers

from zoo import Model
from zoo.transformers_models import (
    BERT,
    IMAGE,
    LAYERS,
    SEAMLESS,
    TEXT,
    Inputs,
    of,
    tokens,
    translated,
)
from zoo.transformers_models import (
    MODELS as LATER,
)

SPEECH_MODELS = (
    "hubert",
    "unispeech",
    "unispeech_sat",
    "wav2vec2",
    "wav2vec2_bert",
    "wav2vec2_conformer",
    "wavlm",
)
OTHERS = (
    "longformer",
    "longformer_global",
    "flaubert",
    "fastspeech2_conformer",
)
PARTS = ("encoder", "decoder")
TRANSFORMER = {
    "d_model": 16,
    **{
        f"{part}_{what}": number
        for part in PARTS
        for what, number in (("layers", 2), ("attention_heads", 2), ("ffn_dim", 20))
    },
}
TRANSLATOR = {**TRANSFORMER, "vocab_size": 50, "pad_token_id": 1, "max_position_embeddings": 64}
TRANSLATORS = {
    "bart": "Bart",
    "bigbird_pegasus": "BigBirdPegasus",
    "blenderbot": "Blenderbot",
    "blenderbot_small": "BlenderbotSmall",
    "m2m_100": "M2M100",
    "marian": "Marian",
    "plbart": "PLBart",
}


def spoken() -> Inputs:
    return {
        "input_features": torch.randn(2, 8, 32),
        "decoder_input_ids": torch.randint(3, IMAGE, (2, 6)),
    }


def pictures() -> Inputs:
    return {
        "pixel_values": torch.randn(1, 3, 128, 128),
        "pixel_mask": torch.ones(1, 128, 128, dtype=torch.long),
    }


def series() -> Inputs:
    return {
        "past_values": torch.randn(2, 15),
        "past_time_features": torch.randn(2, 15, 1),
        "past_observed_mask": torch.ones(2, 15),
        "future_values": torch.randn(2, 4),
        "future_time_features": torch.randn(2, 4, 1),
    }


def pictured() -> Inputs:
    inputs = tokens(10)
    places = torch.zeros(2, 10, dtype=torch.long)
    places[:, 2:6] = 1
    return {
        **inputs,
        "pixel_values": torch.randn(2, 3, 16, 16),
        "image_embeds_position_mask": places,
    }


def seen() -> Inputs:
    inputs = tokens(10)
    inputs["input_ids"][:, 2:6] = IMAGE
    return {
        **inputs,
        "pixel_values": torch.randn(2, 3, 16, 16),
        "pixel_mask": torch.ones(2, 16, 16, dtype=torch.bool),
    }


def detecting(name: str, *stages: str, **options: Any) -> Model:
    return of(
        name,
        pictures,
        TRANSFORMER,
        train=True,
        num_queries=3,
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        backbone=None,
        backbone_config={
            "model_type": "resnet",
            "embedding_size": 8,
            "hidden_sizes": [8, 8, 8, 8],
            "depths": [1, 1, 1, 1],
            "layer_type": "basic",
            "out_features": list(stages),
        },
        **options,
    )


def composing(name: str) -> Model:
    """The decoder of a model that makes music, on codes of two codebooks."""

    def build() -> Any:
        config = getattr(transformers, f"{name}DecoderConfig")(
            vocab_size=50,
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            ffn_dim=20,
            num_codebooks=2,
            max_position_embeddings=64,
        )
        return getattr(transformers, f"{name}Model")(config)

    return Model(build, lambda: {"input_ids": torch.randint(3, 50, (4, 6))}, train=True)


MODELS: dict[str, Model] = {
    "musicgen": composing("Musicgen"),
    "musicgen_melody": composing("MusicgenMelody"),
    "seamless_m4t": of("SeamlessM4T", translated, SEAMLESS, train=True),
    "seamless_m4t_v2": of("SeamlessM4Tv2", translated, SEAMLESS, train=True),
    "table_transformer": detecting("TableTransformer", "stage4"),
    "deformable_detr": detecting("DeformableDetr", "stage2", "stage3", "stage4", d_model=32),
    "kosmos2": of(
        "Kosmos2",
        pictured,
        train=True,
        text_config={
            "vocab_size": 50,
            "embed_dim": 16,
            "layers": 2,
            "ffn_dim": 20,
            "attention_heads": 2,
            "max_position_embeddings": 64,
        },
        vision_config={
            "hidden_size": 16,
            "intermediate_size": 20,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "image_size": 16,
            "patch_size": 8,
        },
        latent_query_num=4,
    ),
    "aria": of(
        "Aria",
        seen,
        train=True,
        image_token_id=IMAGE,
        projector_patch_to_query_dict={16: 4},
        text_config={
            **TEXT,
            "model_type": "aria_text",
            "moe_num_experts": 2,
            "moe_topk": 1,
            "moe_num_shared_experts": 1,
        },
        vision_config={
            **LAYERS,
            "model_type": "idefics3_vision",
            "intermediate_size": 20,
            "image_size": 16,
            "patch_size": 4,
        },
    ),
    **{name: LATER[name] for name in (*SPEECH_MODELS, *OTHERS)},
    **{name: of(model, translated, TRANSLATOR, train=True) for name, model in TRANSLATORS.items()},
    "biogpt": of("BioGpt", tokens, BERT, train=True),
    "ibert": of("IBert", tokens, BERT, train=True),
    "opt": of("OPT", tokens, BERT, ffn_dim=20, word_embed_proj_dim=16, train=True),
    "whisper": of(
        "Whisper",
        spoken,
        TRANSLATOR,
        train=True,
        num_mel_bins=8,
        max_source_positions=16,
        max_target_positions=64,
    ),
    "time_series_transformer": of(
        "TimeSeriesTransformer",
        series,
        TRANSLATOR,
        train=True,
        prediction_length=4,
        context_length=8,
        num_time_features=1,
        lags_sequence=[1, 2, 3, 4, 5, 6, 7],
    ),
}
