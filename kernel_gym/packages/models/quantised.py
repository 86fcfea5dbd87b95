"""Models whose linear layers hold packed ternary weights, as BitNet's checkpoints do."""

from __future__ import annotations

import inspect

import torch
from torch import nn

from kernel_gym.packages.models.pretrained import PretrainedModel

KEPT = ("lm_head", "score", "classifier")
"""Layers that stay as they are, by the last part of their path."""


def is_ternary(values: object) -> bool:
    """Returns whether a quantization of a configuration is that of BitNet with packed weights."""
    known = isinstance(values, dict) and values.get("quant_method") == "bitnet"
    return known and values.get("linear_class", "bitlinear") == "bitlinear"  # type: ignore[attr-defined]


@torch.no_grad()
def pack_linear_layers(model: PretrainedModel, use_rms_norm: bool = False) -> None:
    """Replaces linear layers by transformers' `BitLinear` with their weights, rounded and packed.

    A layer stays as it is if its number of outputs is no multiple of 4, or if the class of the
    module above it reads its weight, as Mamba does.
    """
    from transformers.integrations.bitnet import BitLinear, pack_weights

    layers = [(path, one) for path, one in model.named_modules() if type(one) is nn.Linear]
    for path, layer in layers:
        if path.rpartition(".")[2] in KEPT or layer.out_features % 4 or _is_read(model, path):
            continue
        sizes = (layer.in_features, layer.out_features)
        packed = BitLinear(
            *sizes, layer.bias is not None, dtype=layer.weight.dtype, use_rms_norm=use_rms_norm
        )
        scale = 1.0 / layer.weight.float().abs().mean().clamp(min=1e-5)
        packed.weight = nn.Buffer(pack_weights((layer.weight.float() * scale).round().clamp(-1, 1)))
        packed.weight_scale.fill_(scale)
        if layer.bias is not None:
            packed.bias.copy_(layer.bias)
        model.set_submodule(path, packed.to(layer.weight.dtype).eval())


def _is_read(model: PretrainedModel, path: str) -> bool:
    """Returns whether the class of the module above a layer uses the layer's weight itself."""
    above, _, name = path.rpartition(".")
    return f"self.{name}.weight" in inspect.getsource(type(model.get_submodule(above)))


def widen(model: PretrainedModel, dtype: torch.dtype) -> PretrainedModel:
    """Returns a model in a wider type, with layers that keep a type of their own."""
    model = model.to(dtype)
    for module in model.modules():
        if isinstance(vars(module).get("dtype"), torch.dtype):
            vars(module)["dtype"] = dtype
    return model
