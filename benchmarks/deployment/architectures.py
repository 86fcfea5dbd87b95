"""The architectures of the table: model types of transformers, with values that tiny ones need."""

from __future__ import annotations

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
    "qwen3_moe": {},
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
}
DECODED = ("llama", "mistral", "qwen2", "qwen3", "gemma", "phi3", "olmo2", "gpt2", "bert")
"""Architectures that also generate tokens, with the first package that is replaced."""
GATED_GELU = "llama with hidden_act=gelu"
"""A model for the GeGLU with the exact GELU, which few architectures have by default."""


def config_of(name: str) -> Any:
    """Returns the tiny configuration of an architecture.

    Raises:
        ModelError: transformers has no such model type, or refuses the values.
    """
    from kernel_gym.packages.models.build import tiny_config

    if name == GATED_GELU:
        return tiny_config("llama", hidden_act="gelu")
    return tiny_config(name, **ARCHITECTURES[name])
