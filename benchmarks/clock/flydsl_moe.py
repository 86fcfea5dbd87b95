"""Launches of aiter's FlyDSL kernels for mixtures of experts, as aiter's tuner makes them.

Weights and activations are one constant: no time of the model depends on values, but on the routing
it does. The routing is drawn as the tuner draws it: the largest of normal scores.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

_SLOT_BITS = 24
"""A sorted entry has the token in its low bits, and which of its experts it is above them."""
_BYTE = 0x22
"""Two times 1 in float4_e2m1fn, and a small number in float8_e4m3fn and int4."""
_UNIT_SCALE = 127
"""The byte of 1 in float8_e8m0fnu."""
_GROUP = 32
"""Elements that share a scale."""
_ROWS, _COLUMNS = 256, 8
"""Scales are padded to multiples of so many rows and columns."""
_SIZES = ("token", "model_dim", "inter_dim", "expert")
_SITU = {"situ_beta": 4.0, "situ_linear_beta": 25.0}
_ACTIVATIONS = {"Silu": "silu", "Swiglu": "swiglu", "Situv2": "situv2"}
_PER_BYTE = {"fp4": 2, "int4": 2, "fp8": 1}
"""Elements of a type in a byte."""
Call = Callable[[], object]


class Routing(NamedTuple):
    """Which expert multiplies which token, in blocks of one expert.

    Attributes:
        ids: int32[most]: the token of each row and which of its experts it is.
        experts: int32[blocks]: the expert of each block of rows.
        weights: float32[most]: of each row.
        valid: int32[2]: rows in use, and tokens.
    """

    ids: torch.Tensor
    experts: torch.Tensor
    weights: torch.Tensor
    valid: torch.Tensor


def route(tokens: int, experts: int, topk: int, block: int, seed: int = 0) -> Routing:
    """Draws experts for tokens, and sorts the tokens by expert in padded blocks, on the CPU.

    Args:
        tokens: Their number.
        experts: Their number.
        topk: Experts of each token.
        block: Rows of a block.
        seed: Of the draw.
    """
    scores = torch.randn(tokens, experts, generator=torch.Generator().manual_seed(seed))
    chosen = scores.topk(topk, dim=1).indices.to(torch.int32)
    order = torch.argsort(chosen.flatten(), stable=True)
    counts = torch.bincount(chosen.flatten(), minlength=experts)
    blocks = (counts + block - 1) // block
    most = tokens * topk + experts * block - topk
    places = (-(-most // block)) * block
    ids = torch.full((places,), topk << _SLOT_BITS | tokens, dtype=torch.int32)
    weights = torch.zeros(places)
    first_rows = (torch.cumsum(blocks, 0) - blocks) * block
    first_entries = torch.cumsum(counts, 0) - counts
    owners = chosen.flatten()[order].long()
    rows = first_rows[owners] + torch.arange(len(order)) - first_entries[owners]
    ids[rows] = (((order % topk) << _SLOT_BITS) | (order // topk)).to(torch.int32)
    weights[rows] = 1 / topk
    of_block = torch.zeros(places // block, dtype=torch.int32)
    used = torch.repeat_interleave(torch.arange(experts, dtype=torch.int32), blocks)
    of_block[: len(used)] = used
    valid = torch.tensor([len(used) * block, tokens], dtype=torch.int32)
    return Routing(ids, of_block, weights, valid)


def stage_1(aiter: Any, configuration: dict[str, Any], problem: dict[str, Any]) -> Call:
    """The call of the first stage."""
    kernels = aiter.module("moe_kernels")
    tokens, wide, inner, experts = _sizes(problem)
    routing = _on_device(problem)
    a_dtype, b_dtype = configuration["a_dtype"], configuration["b_dtype"]
    scales = _scales(len(routing.ids), wide) if a_dtype == "fp4" else None
    arguments = {
        "a": _activations((tokens, wide), a_dtype),
        "w1": _weights((experts, 2 * inner), wide, b_dtype),
        "w1_scale": _weight_scales(experts * 2 * inner, wide, b_dtype),
        "a1_scale": scales,
        "sorted_token_ids": routing.ids,
        "sorted_expert_ids": routing.experts,
        "num_valid_ids": routing.valid,
        "topk": problem["topk"],
        "act": _activation(problem),
        "bias": _bias(problem, a_dtype, 2 * inner),
        **_SITU,
        **configuration,
    }
    return lambda: kernels.flydsl_moe_stage1(**arguments)


def stage_2(aiter: Any, configuration: dict[str, Any], problem: dict[str, Any]) -> Call:
    """The call of the second stage; the tuner's time includes that the result is set to zero."""
    kernels = aiter.module("moe_kernels")
    tokens, wide, inner, experts = _sizes(problem)
    routing = _on_device(problem)
    a_dtype, b_dtype = configuration["a_dtype"], configuration["b_dtype"]
    shape: tuple[int, ...] = (tokens, problem["topk"], inner)
    if a_dtype == "bf16":
        shape = (len(routing.ids), inner)  # in sorted order
    out = torch.empty(tokens, wide, dtype=torch.bfloat16, device="cuda")
    scales = None if a_dtype == "bf16" else _scales(len(routing.ids), inner)
    arguments = {
        "inter_states": _activations(shape, a_dtype),
        "w2": _weights((experts, wide), inner, b_dtype),
        "w2_scale": _weight_scales(experts * wide, inner, b_dtype),
        "a2_scale": scales,
        "sorted_token_ids": routing.ids,
        "sorted_expert_ids": routing.experts,
        "num_valid_ids": routing.valid,
        "sorted_weights": routing.weights,
        "out": out,
        "topk": problem["topk"],
        "bias": _bias(problem, a_dtype, wide),
        **configuration,
        "sort_block_m": problem["block_m"],
    }

    def call() -> object:
        if configuration["mode"] == "atomic":
            out.zero_()
        return kernels.flydsl_moe_stage2(**arguments)

    return call


def _sizes(problem: dict[str, Any]) -> tuple[int, int, int, int]:
    tokens, wide, inner, experts = (problem[name] for name in _SIZES)
    return tokens, wide, inner, experts


def _activation(problem: dict[str, Any]) -> str:
    return _ACTIVATIONS[str(problem["act_type"]).rpartition(".")[2]]


def _on_device(problem: dict[str, Any]) -> Routing:
    names = ("token", "expert", "topk", "block_m")
    return Routing(*(each.cuda() for each in route(*(problem[name] for name in names))))


def _activations(shape: tuple[int, ...], dtype: str) -> torch.Tensor:
    if dtype == "bf16":
        return torch.empty(shape, dtype=torch.bfloat16, device="cuda").fill_(1)
    packed = (*shape[:-1], shape[-1] // _PER_BYTE[dtype])
    bits = torch.empty(packed, dtype=torch.uint8, device="cuda").fill_(_BYTE)
    return bits.view(torch.float8_e4m3fn) if dtype == "fp8" else bits


def _weights(shape: tuple[int, ...], depth: int, dtype: str) -> torch.Tensor:
    packed = (*shape, depth // _PER_BYTE[dtype])
    size = torch.Size(packed).numel()
    return _Arena.take(size).view(packed)


class _Arena:
    """Bytes for weights that launches share: it grows, since filling takes longer than a launch."""

    bytes: torch.Tensor | None = None

    @classmethod
    def take(cls, size: int) -> torch.Tensor:
        """So many bytes."""
        if cls.bytes is None or len(cls.bytes) < size:
            cls.bytes = None  # frees it first
            cls.bytes = torch.empty(size, dtype=torch.uint8, device="cuda").fill_(_BYTE)
        return cls.bytes[:size]


def _weight_scales(rows: int, depth: int, dtype: str) -> torch.Tensor:
    if dtype == "int4":  # one in bfloat16 for each group
        return torch.empty(rows * depth // _GROUP, dtype=torch.bfloat16, device="cuda").fill_(1)
    return _scales(rows, depth)


def _scales(rows: int, depth: int) -> torch.Tensor:
    """A byte for each group of a row, with the padding of aiter's `e8m0_shuffle`."""
    columns = depth // _GROUP
    size = -(-rows // _ROWS) * _ROWS * -(-columns // _COLUMNS) * _COLUMNS
    return torch.empty(size, dtype=torch.uint8, device="cuda").fill_(_UNIT_SCALE)


def _bias(problem: dict[str, Any], a_dtype: str, columns: int) -> torch.Tensor | None:
    """A bias where the tuner gives one: for one activation with 8-bit inputs."""
    if _activation(problem) != "swiglu" or a_dtype != "fp8":
        return None
    shape = problem["expert"], columns
    return torch.empty(shape, dtype=torch.float32, device="cuda").fill_(0)
