"""The architectures of the table: model types of transformers, with values that tiny ones need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SMALL_MLA = {
    "q_lora_rank": 64,
    "kv_lora_rank": 32,
    "qk_rope_head_dim": 16,
    "qk_nope_head_dim": 16,
    "v_head_dim": 32,
    "head_dim": 16,
    "num_key_value_heads": 4,
    "num_experts_per_tok": 2,
    "n_routed_experts": 4,
    "n_group": 1,
    "topk_group": 1,
    "first_k_dense_replace": 1,
}
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "llama": {},
    "mistral": {},
    "mixtral": {},
    "qwen2": {},
    "qwen2_moe": {"shared_expert_intermediate_size": 64},
    "qwen3": {},
    "qwen3_moe": {"norm_topk_prob": True},
    "gemma": {},
    "gemma2": {},
    "phi": {"num_key_value_heads": 4},
    "phi3": {},
    "olmo": {},
    "olmo2": {},
    "olmoe": {},
    "granite": {},
    "granitemoe": {},
    "starcoder2": {},
    "stablelm": {},
    "cohere": {},
    "cohere2": {},
    "glm": {},
    "nemotron": {"num_key_value_heads": 2, "head_dim": 32},
    "ministral": {"num_key_value_heads": 2, "head_dim": 32},
    "smollm3": {},
    "lfm2": {},
    "deepseek_v2": SMALL_MLA,
    "deepseek_v3": SMALL_MLA,
    "gpt_oss": {},
    "gpt2": {},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},
    "gpt_neox": {},
    "gptj": {"rotary_dim": 16},
    "bloom": {},
    "opt": {},
    "mpt": {},
    "falcon": {"num_kv_heads": 4},
    "codegen": {"rotary_dim": 16},
    "mamba": {},
    "bert": {},
    "modernbert": {},
    "vit": {},
    "siglip_vision_model": {},
    "qwen2_audio_encoder": {},
    "clip_vision_model": {},
    "convnext": {"patch_size": 4, "hidden_sizes": [32, 64], "depths": [1, 1], "num_stages": 2},
    "resnet": {
        "embedding_size": 32,
        "hidden_sizes": [32, 64],
        "depths": [2, 2],
        "layer_type": "basic",
    },
    "regnet": {
        "embedding_size": 32,
        "hidden_sizes": [32, 64],
        "depths": [1, 1],
        "groups_width": 16,
    },
}
_SECTIONS = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [4, 6, 6]}
_BOTH = ["linear_attention", "full_attention"]
OTHERS: dict[str, dict[str, Any]] = {
    "bitnet": {},
    "convnextv2": {"patch_size": 4, "hidden_sizes": [32, 64], "depths": [1, 1], "num_stages": 2},
    "deepseek_v32": SMALL_MLA,
    "dinov3_vit": {},
    "gemma4_text": {"vocab_size_per_layer_input": 256, "hidden_size_per_layer_input": 32},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1},
    "mamba2": {"num_heads": 8, "head_dim": 32, "n_groups": 1},
    "qwen2_vl_text": {"rope_parameters": _SECTIONS, "head_dim": 32},
    "qwen3_next": {"layer_types": _BOTH},
    "qwen3_vl_moe_text": {},
    "swinv2": {
        "patch_size": 4,
        "embed_dim": 32,
        "depths": [1, 1],
        "num_heads": [2, 4],
        "window_size": 4,
    },
    "whisper": {},
    "xlm-roberta": {"pad_token_id": 1},
}
"""Further model types, of FastKernels' architectures."""
ABSENT = "not in transformers"
INPUTS = "takes inputs other than token ids and images"
NO_TINY = "its tiny configuration does not run"
FASTKERNELS: dict[str, str] = {
    "Llama-3.1+": "llama",
    "DeepSeek-V3.2": "deepseek_v32",
    "Mixtral": "mixtral",
    "BitNet 1.58b": "bitnet",
    "GPT-OSS (MXFP4)": "gpt_oss",
    "EAGLE-3": ABSENT,
    "Gemma-4": "gemma4_text",
    "Mamba": "mamba",
    "Mamba2": "mamba2",
    "RWKV-7": ABSENT,
    "GLA": ABSENT,
    "RetNet": ABSENT,
    "Qwen-3-Next": "qwen3_next",
    "Kimi-Linear": NO_TINY,
    "TTT-E2E": ABSENT,
    "Jamba": "jamba",
    "FLUX.1-Dev": ABSENT,
    "HunyuanVideo-1.5": ABSENT,
    "SDXL": ABSENT,
    "SAM3.1": INPUTS,
    "Whisper": "whisper",
    "CosyVoice3": ABSENT,
    "Qwen2-VL": "qwen2_vl_text",
    "Qwen3-VL": "qwen3_vl_moe_text",
    "Qwen-2.5-Omni": INPUTS,
    "SigLIP-2": INPUTS,
    "DINOv3": "dinov3_vit",
    "SwinV2": "swinv2",
    "MobileNetV4": ABSENT,
    "ConvNeXtV2": "convnextv2",
    "EfficientNetV2": ABSENT,
    "YOLOv10": ABSENT,
    "RTDetrV2": INPUTS,
    "3DGS": ABSENT,
    "InstantNGP": ABSENT,
    "PointTransformerV3": ABSENT,
    "OpenFold3": ABSENT,
    "Pi0": INPUTS,
    "DP3": ABSENT,
    "DLRMv2": ABSENT,
    "LightGCN": ABSENT,
    "BGE-M3": "xlm-roberta",
    "ColBERTv2": "bert",
    "LLaDA": ABSENT,
    "Oasis": ABSENT,
    "V-JEPA 2": INPUTS,
}
"""The 46 architectures of FastKernels' registry, and the model type that stands for each: of a
model with several parts the one for text or images. Without a model type, the reason."""
DECODED = ("llama", "mistral", "qwen2", "qwen3", "gemma", "phi3", "olmo2", "gpt2", "bert")
"""Architectures that also generate tokens, with the first package that is replaced."""
GATED_GELU = "llama with hidden_act=gelu"
"""A model for the GeGLU with the exact GELU, which few architectures have by default."""


def config_of(name: str, problem: str = "", sizes: Mapping[str, int] | None = None) -> Any:
    """Returns the tiny configuration of an architecture, with what a problem's package needs.

    Args:
        name: The architecture.
        problem: The problem of the package.
        sizes: Other sizes, of which those count that the configuration has and nothing else sets.

    Raises:
        ModelError: transformers has no such model type, or refuses the values.
    """
    from kernel_gym.packages.models.build import fitting, tiny_config
    from kernel_gym.packages.models.operations import OPERATIONS

    kind, values = name, (ARCHITECTURES | OTHERS | {GATED_GELU: {"hidden_act": "gelu"}})[name]
    if name == GATED_GELU:
        kind = "llama"
    needed = OPERATIONS[problem].tiny if problem else {}
    return tiny_config(kind, **(fitting(kind, {**(sizes or {}), **needed}) | values))
