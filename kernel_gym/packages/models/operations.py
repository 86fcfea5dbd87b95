"""The operations that models can take from a package, and how models write them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True)
class Operation:
    """An operation of models.

    Attributes:
        signatures: Operators of PyTorch; a module that runs all of one set computes the operation.
        layers: Layers of the package that may replace a module or a function.
        plain: The operation as models write it.
        prepare: Returns the arguments of `plain` for those of the package's operator. It takes no
            part in times: models have their values in this form.
        functions: Functions in the files of models that compute the operation, with their names in
            transformers' mapping of kernels.
        activation: The activation that a gated MLP must have, in fp64.
        dtype: The type of models; None for that of the package's first tensor of floats.
        tiny: Sizes and settings that tiny models need to have the operation.
        alone: Whether a replaced module computes the operation and nothing else, so that its own
            code is timed in place of `plain`.
    """

    signatures: tuple[frozenset[str], ...]
    layers: tuple[str, ...]
    plain: Callable[..., Tensor | tuple[Tensor, ...]]
    prepare: Callable[..., tuple[object, ...]] = lambda *arguments: arguments
    activation: Callable[[Tensor], Tensor] | None = None
    functions: Mapping[str, str] = field(default_factory=dict)
    dtype: torch.dtype | None = None
    tiny: Mapping[str, object] = field(default_factory=dict)
    alone: bool = False


def _rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    wide = x.float()
    return weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)).to(x.dtype)


def _add_rms_norm(x: Tensor, residual: Tensor, weight: Tensor, eps: float) -> Tensor:
    return _rms_norm(residual + x, weight, eps)


def _rope_arguments(x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, ...]:
    """Returns heads before tokens, as a view, and whole tables in the type of x."""
    c, s = (torch.cat((table, table), -1).to(x.dtype) for table in (cos, sin))
    return x.transpose(0, 1), c, s


def _rope(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return x * cos + torch.cat((-b, a), -1) * sin


def _halves(x: Tensor) -> tuple[Tensor, ...]:
    return tuple(half.contiguous() for half in x.chunk(2, -1))


def _swiglu(gate: Tensor, up: Tensor) -> Tensor:
    return F.silu(gate) * up


def _geglu(value: Tensor, gate: Tensor) -> Tensor:
    return F.gelu(gate) * value


def _softmax(x: Tensor) -> Tensor:
    return F.softmax(x, dim=-1)


def _cross_entropy(logits: Tensor, target: Tensor, ignore_index: int) -> Tensor:
    return F.cross_entropy(logits.float(), target, ignore_index=ignore_index, reduction="none")


def _layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    return F.layer_norm(x, (x.shape[-1],), weight, bias, eps)


def _gather_rows(table: Tensor, ids: Tensor) -> Tensor:
    return F.embedding(ids, table)


def _conv1d(x: Tensor, weight: Tensor, bias: Tensor, stride: int) -> Tensor:
    return F.conv1d(x, weight, bias, stride, weight.shape[2] // 2)


def _bias_if_any(x: Tensor, weight: Tensor, bias: Tensor, *rest: Tensor) -> tuple[object, ...]:
    """Returns no bias for zeros: the package takes them for models that have none."""
    return x, weight, bias if bias.any() else None, *rest


def _conv2d(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return F.conv2d(x, weight, bias, padding=1)


def _patch_embed(x: Tensor, weight: Tensor, bias: Tensor | None, position: Tensor) -> Tensor:
    """Models add positions elsewhere: those of the package are zeros."""
    return F.conv2d(x, weight, bias, stride=weight.shape[2])


def _depthwise_conv2d(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    pad = weight.shape[1] // 2
    return F.conv2d(x, weight[:, None], bias, padding=pad, groups=len(weight))


def _grouped_conv2d(x: Tensor, weight: Tensor, groups: int, stride: int, dilation: int) -> Tensor:
    return F.conv2d(x, weight, None, stride, dilation * (weight.shape[2] // 2), dilation, groups)


def _causal_conv1d(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    channels, taps = weight.shape
    padded = F.conv1d(x, weight[:, None], bias, padding=taps - 1, groups=channels)
    return F.silu(padded[:, :, : x.shape[2]])


def _route(logits: Tensor, top_k: int) -> tuple[Tensor, Tensor]:
    best, experts = torch.topk(F.softmax(logits, dim=-1), top_k, dim=-1)
    return best / best.sum(dim=-1, keepdim=True), experts


def _attention(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale, enable_gqa=True)


def _unmasked_attention(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, scale=scale)


def _by_rows(x: Tensor, x_scale: Tensor, code: Tensor, w_scale: float) -> tuple[object, ...]:
    """Packs ternary weights as transformers does: a byte has one column of four rows."""
    codes = torch.stack([(code >> 2 * place) & 3 for place in range(4)], 2).flatten(1)
    parts = codes.chunk(4)
    return x, x_scale, parts[0] | parts[1] << 2 | parts[2] << 4 | parts[3] << 6, w_scale


def _bit_linear(x: Tensor, x_scale: Tensor, packed: Tensor, w_scale: float) -> Tensor:
    weight = torch.cat([(packed >> 2 * place) & 3 for place in range(4)]).to(torch.bfloat16) - 1
    return F.linear(x.to(torch.bfloat16), weight) * (x_scale[:, None] * w_scale).to(torch.bfloat16)


def _w4a16(x: Tensor, qweight: Tensor, scales: Tensor, qzeros: Tensor) -> Tensor:
    """Unpacks the weight in each call, as GPTQModel does in PyTorch."""
    shifts = torch.arange(0, 32, 4, device=x.device, dtype=torch.int32)
    codes = ((qweight[:, None] >> shifts[:, None]) & 15).flatten(0, 1)
    zeros = ((qzeros[..., None] >> shifts) & 15).flatten(1) + 1
    size = len(codes) // len(scales)
    weight = (codes.unflatten(0, (-1, size)) - zeros[:, None]) * scales[:, None]
    return x @ weight.flatten(0, 1)


_CONVOLUTIONS = {"causal_conv1d_fn": "causal_conv1d_fn"}
_FUSED = "_scaled_dot_product_flash_attention_for_cpu"
_WHOLE = (frozenset({_FUSED}), frozenset({"_safe_softmax"}), frozenset({"_softmax", "bmm"}))
_FUNCTIONS = {"apply_rotary_pos_emb": "rotary_pos_emb"}
_RMS = (frozenset({"rsqrt", "mean"}), frozenset({"_fused_rms_norm"}))
_UNPACKED = (
    frozenset({"bitwise_right_shift", "bitwise_and", "mm"}),
    frozenset({"__rshift", "bitwise_and", "mm"}),
)
_FILTER = (frozenset({"convolution"}),)
_GATED = {
    "silu": (frozenset({"silu", "mul"}),),
    "gelu": (frozenset({"gelu", "mul"}),),
}
OPERATIONS: dict[str, Operation] = {
    "rms_norm": Operation(_RMS, ("RMSNorm", "RMSNormZeroCentered"), _rms_norm, alone=True),
    "layer_norm": Operation(
        (frozenset({"native_layer_norm"}),), ("LayerNorm",), _layer_norm, alone=True
    ),
    "add_rms_norm": Operation(_RMS, (), _add_rms_norm),
    "swiglu": Operation(
        _GATED["silu"],
        ("SwiGLUMLP", "SwiGLUMLPPacked"),
        _swiglu,
        _halves,
        F.silu,
    ),
    "geglu": Operation(_GATED["gelu"], ("GeGLUMLP",), _geglu, _halves, F.gelu),
    "softmax": Operation((frozenset({"_softmax"}),), (), _softmax),
    "rope": Operation(
        (frozenset({"neg", "cat", "mul", "add"}),),
        ("RotaryPosEmb",),
        _rope,
        _rope_arguments,
        functions=_FUNCTIONS,
    ),
    "cross_entropy": Operation((frozenset({"nll_loss_forward"}),), (), _cross_entropy),
    "gather_rows": Operation((frozenset({"embedding"}),), ("Embedding",), _gather_rows),
    "conv1d": Operation(_FILTER, ("Conv1d",), _conv1d),
    "conv2d": Operation(_FILTER, ("Conv2d",), _conv2d, _bias_if_any),
    "patch_embed": Operation(_FILTER, ("Conv2d",), _patch_embed, _bias_if_any),
    "depthwise_conv2d": Operation(_FILTER, ("Conv2d",), _depthwise_conv2d, _bias_if_any),
    "grouped_conv2d": Operation(_FILTER, ("Conv2d",), _grouped_conv2d),
    "causal_conv1d": Operation(
        (frozenset({"convolution", "silu"}),),
        ("CausalConv1d",),
        _causal_conv1d,
        functions=_CONVOLUTIONS,
    ),
    "moe_topk_softmax": Operation(
        (frozenset({"topk", "_softmax"}),),
        ("TopKRouter", "TopKRouterWideWeights", "TopKRouterWideLogits"),
        _route,
        dtype=torch.float16,
    ),
    "gqa_attention": Operation(_WHOLE, (), _attention, tiny={"head_dim": 64}),
    "cross_attention": Operation(
        _WHOLE, (), _unmasked_attention, dtype=torch.float16, tiny={"head_dim": 64}
    ),
    "bitnet_matmul": Operation(
        (frozenset({"round", "clamp", "mm"}), frozenset({"round", "clamp", "addmm"})),
        ("BitLinear",),
        _bit_linear,
        _by_rows,
        dtype=torch.bfloat16,
        tiny={"quantization_config": {"quant_method": "bitnet", "linear_class": "bitlinear"}},
    ),
    "w4a16_matmul": Operation(_UNPACKED, ("GPTQLinear", "GPTQv2Linear", "AWQLinear"), _w4a16),
}
"""By the name of the problem."""
