"""Models of transformers from a configuration, with random weights. Nothing is downloaded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from kernel_gym.errors import InputError
from kernel_gym.packages.models.pretrained import ModelConfig, PretrainedModel
from kernel_gym.packages.models.quantised import is_ternary, pack_linear_layers

if TYPE_CHECKING:
    from transformers import AutoModel, AutoModelForCausalLM

SEED = 0
MAX_CONFIG_BYTES = 1 << 20
MAX_PARAMETERS = 1 << 31
"""Most parameters of a model: three copies have to fit, one of them in fp64."""
TINY: dict[str, int] = {
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "vocab_size": 256,
    "max_position_embeddings": 512,
    "n_embd": 128,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 512,
    "n_ctx": 512,
    "d_model": 128,
    "ffn_dim": 256,
    "ffn_hidden_size": 256,
    "n_heads": 4,
    "n_layers": 2,
    "max_seq_len": 512,
    "max_source_positions": 32,
    "num_layers": 2,
    "moe_intermediate_size": 64,
    "num_experts": 4,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "word_embed_proj_dim": 128,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 256,
    "decoder_ffn_dim": 256,
    "d_ff": 256,
    "d_kv": 32,
    "embedding_size": 128,
    "image_size": 64,
    "patch_size": 16,
    "type_vocab_size": 2,
}
"""Sizes of a tiny model, by the names that configurations have for them."""
OMITTED = "omitted_quantization"
"""Attribute of a configuration from a file: the quantization that its model is built without."""
NO_TOKEN = {"pad_token_id": None, "eos_token_id": None, "bos_token_id": None}


class ModelError(InputError, ValueError):
    """A model cannot be built. The message says which, and why."""


def read_config(text: str, tiny: Mapping[str, object] | None = None) -> ModelConfig:
    """Returns the configuration of a model.

    A file may ask for BitNet's packed weights. Models are built without any other quantization,
    whose name the configuration then has as `OMITTED`.

    Args:
        text: A `config.json`, a folder with one, or a model type, such as `llama`, for a tiny one.
        tiny: Further values of a tiny one, where its configuration has them.

    Raises:
        ModelError: There is no such file or model type, or transformers refuses the values.
    """
    path = Path(text)
    path = path / "config.json" if path.is_dir() else path
    if path.suffix == ".json" or path.is_file():
        return _made(*_read(path))
    return tiny_config(text, **fitting(text, tiny or {}))


def _read(path: Path) -> tuple[str, dict[str, object]]:
    try:
        if path.stat().st_size > MAX_CONFIG_BYTES:
            raise ModelError(f"{path}: more than {MAX_CONFIG_BYTES} bytes")
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: {error}") from None
    if not isinstance(values, dict) or not isinstance(values.get("model_type"), str):
        raise ModelError(f"{path}: found no model_type, expected a configuration of a model")
    if not is_ternary(values.get("quantization_config")):
        omitted = values.pop("quantization_config", None)
        values[OMITTED] = _method(omitted)
    return values.pop("model_type"), values


def _method(quantization: object) -> str:
    """Returns the name of a quantization; empty if there is none."""
    if not quantization:
        return ""
    known = quantization.get("quant_method") if isinstance(quantization, dict) else None
    return str(known or "of an unknown method")[:100]


def tiny_config(model_type: str, **values: object) -> ModelConfig:
    """Returns a configuration with two layers of 128, and further values.

    Raises:
        ModelError: transformers has no such model type, or refuses the values.
    """
    default = _made(model_type, {})
    known = default.to_dict()
    aliases = getattr(default, "attribute_map", {})
    names = {name for name in TINY if name in known and name not in aliases}
    sizes = {name: TINY[name] for name in names if known[name] is not None}
    return _made(model_type, sizes | NO_TOKEN | values)


def fitting(model_type: str, values: Mapping[str, object]) -> dict[str, object]:
    """Returns those values that a model type has, and a quantization, which all have."""
    default = _made(model_type, {})
    known, aliases = default.to_dict(), getattr(default, "attribute_map", {})
    return {
        name: value
        for name, value in values.items()
        if (known.get(name) is not None and name not in aliases) or name == "quantization_config"
    }


def _made(model_type: str, values: Mapping[str, object]) -> ModelConfig:
    try:
        from transformers import AutoConfig
    except ImportError as error:
        raise ModelError(f"{error}: install kernel-gym with the extra `train`") from None
    try:
        return AutoConfig.for_model(model_type, **values)
    except Exception as error:
        raise ModelError(f"{model_type}: {_line(error)}") from None


def build(config: ModelConfig, dtype: torch.dtype, attention: str) -> PretrainedModel:
    """Returns a model for inference on the CPU, with the same random weights each time.

    One-dimensional parameters, such as weights of norms, are drawn too: all ones would hide errors.

    Args:
        config: The configuration.
        dtype: The type of its parameters.
        attention: The implementation of attention: `eager` or `sdpa`; models without the second
            one get the first.

    Raises:
        ModelError: The model cannot be built, or is too large.
    """
    from transformers import AutoModel, AutoModelForCausalLM

    kind = type(config)
    auto = AutoModelForCausalLM if kind in AutoModelForCausalLM._model_mapping else AutoModel
    torch.manual_seed(SEED)
    try:
        with torch.device("meta"):
            count = sum(p.numel() for p in auto.from_config(config).parameters())
        if count > MAX_PARAMETERS:
            raise ModelError(f"{count} parameters, expected at most {MAX_PARAMETERS}")
        torch.manual_seed(SEED)
        model = _from(auto, config, dtype, attention).eval()
    except Exception as error:
        raise ModelError(f"{config.model_type}: {_line(error)}") from None
    _draw_vectors(model)
    quantization = getattr(config, "quantization_config", None) or {}
    if is_ternary(quantization):
        pack_linear_layers(model, bool(quantization.get("use_rms_norm")))
    return model


def _from(
    auto: type[AutoModel] | type[AutoModelForCausalLM],
    config: ModelConfig,
    dtype: torch.dtype,
    attention: str,
) -> PretrainedModel:
    """Makes a model. Experts run one after the other: grouped products have no kernel for fp64."""
    try:
        model = auto.from_config(config, dtype=dtype, attn_implementation=attention)
    except ValueError as error:
        if "does not support an attention implementation" not in str(error):
            raise
        model = auto.from_config(config, dtype=dtype, attn_implementation="eager")
    if hasattr(model, "set_experts_implementation"):
        model.set_experts_implementation("eager")
    return model


@torch.no_grad()
def _draw_vectors(model: PretrainedModel) -> None:
    """Moves each one-dimensional parameter a little away from its first value."""
    generator = torch.Generator().manual_seed(SEED)
    for parameter in model.parameters():
        if parameter.ndim == 1:
            noise = 0.2 * torch.randn(parameter.shape, generator=generator)
            parameter.add_(noise.to(parameter.dtype))


def inputs_of(model: PretrainedModel, batch: int, tokens: int) -> dict[str, torch.Tensor]:
    """Returns a batch of random inputs on the CPU.

    Raises:
        ModelError: The model takes neither token ids nor pixels nor spectra.
    """
    generator = torch.Generator().manual_seed(SEED + 1)
    config = model.config
    name = model.main_input_name
    if name == "pixel_values":
        size = getattr(config, "image_size", None) or TINY["image_size"]
        sides = size if isinstance(size, (list, tuple)) else (size, size)
        shape = (batch, attrgetter("num_channels")(config), *sides)
        return {name: torch.randn(shape, generator=generator).to(model.dtype)}
    if name == "input_features" and hasattr(config, "num_mel_bins"):
        bins, positions = attrgetter("num_mel_bins", "max_source_positions")(config)
        shape = (batch, bins, 2 * positions)
        return {name: torch.randn(shape, generator=generator).to(model.dtype)}
    vocabulary = getattr(config.get_text_config(), "vocab_size", None)
    if name != "input_ids" or not vocabulary:
        raise ModelError(
            f"{config.model_type}: takes {name}, expected token ids, pixels or spectra"
        )
    low = 3 if vocabulary > 6 else 0  # the first ones are often special
    ids = torch.randint(low, vocabulary, (batch, tokens), generator=generator)
    values = {name: ids, "attention_mask": torch.ones_like(ids)}
    if getattr(config, "is_encoder_decoder", False):
        values["decoder_input_ids"] = ids
    return values


def generates(model: PretrainedModel) -> bool:
    """Returns whether the model writes tokens after a prompt of tokens."""
    return bool(model.can_generate()) and model.main_input_name == "input_ids"


def _line(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0] if text else ''}"[:300]
