"""Models of transformers, with configurations as small as they go."""
import torch
import transformers
from zoo import Model

def tokens(vocabulary=50, length=16):
    return {"input_ids": torch.randint(3, vocabulary, (2, length)), "attention_mask": torch.ones(2, length, dtype=torch.long)}

def waves(): return {"input_values": torch.randn(2, 1024)}
def filterbanks(): return {"input_features": torch.randn(2, 24, 16)}

SPEECH = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 20,
    "vocab_size": 32, "layerdrop": 0.2, "mask_time_length": 2, "mask_time_prob": 0.2,
}
WAVES = {
    **SPEECH, "conv_dim": (16, 16), "conv_stride": (4, 4), "conv_kernel": (8, 8), "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2, "feat_extract_norm": "layer",
}
BERT = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 20, "vocab_size": 50, "max_position_embeddings": 64}

def stripped(option):
    return {key: value for key, value in option.items() if value is not None} if isinstance(option, dict) else option

def of(name, inputs, train=False, gradients=True, suffix="Model", **options):
    def build():
        given = {key: stripped(value) for key, value in options.items()}
        config = getattr(transformers, f"{name}Config")(**given)
        return getattr(transformers, f"{name}{suffix}")(config)
    return Model(build, inputs, train, gradients)

def seamless(name):
    return of(name, lambda: {**tokens(), "decoder_input_ids": torch.randint(3, 50, (2, 6))},
        vocab_size=50, t2u_vocab_size=50, hidden_size=16, max_position_embeddings=64, encoder_layers=1, decoder_layers=1,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=20, decoder_ffn_dim=20,
        speech_encoder_layers=1, speech_encoder_attention_heads=2, speech_encoder_intermediate_size=20,
        feature_projection_input_dim=16, speech_encoder_hidden_size=16, t2u_encoder_layers=1, t2u_decoder_layers=1,
        t2u_encoder_attention_heads=2, t2u_decoder_attention_heads=2, t2u_encoder_ffn_dim=20, t2u_decoder_ffn_dim=20,
        t2u_max_position_embeddings=64, unit_hifi_gan_vocab_size=50, unit_embed_dim=16, lang_embed_dim=16, spkr_embed_dim=16,
        upsample_initial_channel=32, num_conv_pos_embeddings=4, num_conv_pos_embedding_groups=2, vocoder_num_langs=4, vocoder_num_spkrs=4, position_embeddings_type="relative", max_source_positions=64, suffix="Model")

IMAGE, VIDEO, START, END = 40, 41, 42, 43

def scene(patch, grid=((1, 4, 4), (1, 4, 8)), types=True):
    """Text with two images in it, as patches of an image processor."""
    counts = [t * h * w // 4 for t, h, w in grid]
    ids, kinds = [3, 4], [0, 0]
    for count in counts:
        ids += [START, *[IMAGE] * count, END, 5]
        kinds += [0, *[1] * count, 0, 0]
    inputs = {
        "input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids), dtype=torch.long),
        "pixel_values": torch.randn(4 * sum(counts), patch), "image_grid_thw": torch.tensor(grid),
    }
    return {**inputs, "mm_token_type_ids": torch.tensor([kinds])} if types else inputs

TEXT = {"vocab_size": 50, "hidden_size": 32, "intermediate_size": 20, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
MROPE = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 1, 1]}
VISION = {"depth": 2, "hidden_size": 32, "intermediate_size": 20, "num_heads": 2, "patch_size": 4, "spatial_merge_size": 2, "temporal_patch_size": 1, "out_hidden_size": 32}
TOKENS = {"image_token_id": IMAGE, "video_token_id": VIDEO, "vision_start_token_id": START, "vision_end_token_id": END}

def seeing(name, text=(), vision=(), types=True, patch=48, tokens=TOKENS, **options):
    return of(name, lambda: scene(patch, types=types), text_config={**TEXT, **dict(text)}, vision_config={**VISION, **dict(vision)}, **tokens, **options)

SIGLIP = {"num_hidden_layers": 2, "num_attention_heads": 2, "num_patches": 16}
for key in ("depth", "num_heads", "temporal_patch_size", "out_hidden_size"):
    SIGLIP[key] = None
DEEPSTACK = {"deepstack_visual_indexes": [0], "num_position_embeddings": 16}

def idefics():
    pixels = torch.randn(2, 2, 3, 16, 16)
    pixels[1, 1] = 0
    ids = torch.randint(3, 30, (2, 10))
    ids[0, 1:5] = IMAGE
    ids[1, 1:3] = IMAGE
    return {"input_ids": ids, "attention_mask": torch.ones(2, 10, dtype=torch.long), "pixel_values": pixels}

MODELS = {
    "qwen2_vl": seeing("Qwen2VL", text={"rope_parameters": MROPE}, vision={"embed_dim": 32, "hidden_size": 32, "mlp_ratio": 2, "out_hidden_size": None, "intermediate_size": None}),
    "qwen2_5_vl": seeing("Qwen2_5_VL", text={"rope_parameters": MROPE}, vision={"window_size": 16, "fullatt_block_indexes": [1]}),
    "qwen3_vl": seeing("Qwen3VL", text={"rope_parameters": MROPE, "head_dim": 8}, vision=DEEPSTACK),
    "cosmos3_omni": seeing("Cosmos3Omni", text={"model_type": "qwen3_vl_text", "rope_parameters": MROPE, "head_dim": 8}, vision={"model_type": "qwen3_vl_vision", **DEEPSTACK}),
    "cosmos3_edge": seeing("Cosmos3Edge", text={"rope_parameters": MROPE, "head_dim": 8}, vision=SIGLIP, projector_hidden_size=32),
    "cohere_compass": seeing("CohereCompass", text={"rope_parameters": {"full_attention": {**MROPE, "mrope_interleaved": True}}}, vision=DEEPSTACK),
    "minimax_m3_vl": seeing("MiniMaxM3VL", text={"head_dim": 8, "rotary_dim": 4, "dense_intermediate_size": 20, "shared_intermediate_size": 20, "num_local_experts": 4, "num_experts_per_tok": 2, "mlp_layer_types": ["dense", "sparse"]}, vision={"num_hidden_layers": 2, "num_attention_heads": 2, "depth": None, "num_heads": None, "out_hidden_size": None}, types=False, tokens={"image_token_index": IMAGE, "video_token_index": VIDEO}, projector_hidden_size=32),
    "idefics2": of("Idefics2", idefics, image_token_id=IMAGE, text_config={**TEXT, "model_type": "mistral", "pad_token_id": 0}, vision_config={"hidden_size": 16, "intermediate_size": 20, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 16, "patch_size": 8}, perceiver_config={"hidden_size": 32, "resampler_n_latents": 2, "resampler_depth": 1, "resampler_n_heads": 2, "resampler_head_dim": 8, "num_key_value_heads": 1}),

    "hubert": of("Hubert", waves, train=True, **WAVES),
    "unispeech": of("UniSpeech", waves, train=True, **WAVES),
    "unispeech_sat": of("UniSpeechSat", waves, train=True, **WAVES),
    "wav2vec2": of("Wav2Vec2", waves, train=True, **WAVES),
    "wavlm": of("WavLM", waves, train=True, **WAVES),
    "wav2vec2_conformer": of("Wav2Vec2Conformer", waves, train=True, **WAVES),
    "wav2vec2_bert": of("Wav2Vec2Bert", filterbanks, train=True, **SPEECH, feature_projection_input_dim=16),
    "longformer": of("Longformer", tokens, train=True, attention_window=4, **BERT),
    "longformer_global": of("Longformer", lambda: {**tokens(length=15), "global_attention_mask": torch.tensor([[1] + [0] * 14, [1, 1] + [0] * 13])}, train=True, attention_window=4, **BERT),
    "longformer_first": of("Longformer", lambda: {**tokens(), "global_attention_mask": torch.tensor([[1] + [0] * 15] * 2)}, train=True, attention_window=4, **BERT),
    "ctrl": of("CTRL", tokens, vocab_size=50, n_positions=64, n_embd=16, dff=20, n_layer=2, n_head=2),
    "flaubert": of("Flaubert", lambda: {"input_ids": torch.randint(3, 50, (2, 12)), "lengths": torch.tensor([12, 9])}, train=True, emb_dim=16, n_layers=2, n_heads=2, n_words=50, max_position_embeddings=64),
    "xmod": of("Xmod", lambda: {**tokens(), "lang_ids": torch.tensor([0, 1])}, **BERT, languages=("en_XX", "de_DE")),
    "mimi": of("Mimi", lambda: {"input_values": torch.randn(1, 1, 960)}, hidden_size=16, num_filters=4, num_residual_layers=1, upsampling_ratios=[4, 2], codebook_size=16, codebook_dim=16, vector_quantization_hidden_dimension=16, num_quantizers=4, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2, head_dim=8, intermediate_size=20, upsample_groups=4, sliding_window=16),
    "fastspeech2_conformer": of("FastSpeech2Conformer", lambda: {"input_ids": torch.randint(3, 50, (2, 8)), "attention_mask": torch.ones(2, 8, dtype=torch.long)}, vocab_size=50, hidden_size=16, num_mel_bins=8, encoder_num_attention_heads=2, encoder_layers=1, encoder_linear_units=16, decoder_layers=1, decoder_num_attention_heads=2, decoder_linear_units=16, speech_decoder_postnet_layers=2, speech_decoder_postnet_units=16, duration_predictor_channels=16, energy_predictor_channels=16, pitch_predictor_channels=16, pitch_predictor_layers=2, duration_predictor_layers=1),
    "seamless_m4t": seamless("SeamlessM4T"),
    "seamless_m4t_v2": seamless("SeamlessM4Tv2"),
    "bert": of("Bert", tokens, train=True, **BERT),
    "llama": of("Llama", tokens, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=20, vocab_size=50),
}
