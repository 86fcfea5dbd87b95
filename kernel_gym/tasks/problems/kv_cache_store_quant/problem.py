"""Quantises new keys and values and stores them at their slots of a paged cache."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from kernel_gym.tasks.distributions import draw, draw_mask
from kernel_gym.tasks.problem import (
    Axis,
    Check,
    Dims,
    Output,
    TensorArg,
    Value,
    points,
)
from kernel_gym.tasks.shared.quantised import Quantised
from kernel_gym.tasks.workload import Workload


class KvCacheStoreQuant(Quantised):
    """Row `slot[t]` of the caches gets the int8 codes and scales of token t, for each head.

    `scale = max(max|x|, 1e-8) / 127` over one head of one token, `code = round(x / scale)`. The
    slots are a permutation of all rows of the caches.
    """

    name = "kv_cache_store_quant"
    summary = "int8 codes and per-head scales of keys and values, scattered to cache slots"
    category = "Quantization"
    level = 3
    tags = ("decoder-llm", "moe", "memory-bound", "int8", "scatter")
    source = "key and value heads of Llama-3-8B, Qwen2.5-7B, Llama-2-7B and Gemma-2-9B"
    domain = (
        "All floating-point inputs are finite. The slots are distinct; a head may be all zeros."
    )

    args = (
        TensorArg("k", torch.float16, shape="tokens, heads, head_dim"),
        TensorArg("v", torch.float16, shape="tokens, heads, head_dim"),
        TensorArg("slot", torch.int64, shape="tokens"),
    )
    outputs = (
        Output("k_cache", torch.int8, check=Check.CUSTOM, shape="tokens, heads, head_dim"),
        Output("v_cache", torch.int8, check=Check.CUSTOM, shape="tokens, heads, head_dim"),
        Output("k_scale", torch.float32, check=Check.CUSTOM, shape="tokens, heads"),
        Output("v_scale", torch.float32, check=Check.CUSTOM, shape="tokens, heads"),
    )
    axes = (
        Axis("tokens", 1, 1 << 18),
        Axis("heads", 1, 128),
        Axis("head_dim", 16, 256, multiple=16),
    )
    train = points(
        "tokens heads head_dim",
        full=[(16384, 8, 128), (16384, 4, 128), (4096, 32, 128), (8192, 8, 256)],
        sim=[(256, 8, 128), (384, 4, 128), (64, 32, 128), (96, 8, 256)],
    )
    production = points(
        "tokens heads head_dim",
        full=[(8192, 16, 64), (32768, 2, 128), (4096, 32, 96)],
        sim=[(192, 16, 64), (512, 2, 128), (64, 32, 96)],
    )
    adversarial = ({"tokens": 1, "heads": 3, "head_dim": 48},)
    distributions = ("normal", "heavy_tail", "large", "sparse")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws k, v float16, heads of different size or 0, and slots int64 in pages of 16."""
        tokens, heads, width = (workload.dims[axis.name] for axis in self.axes)

        def states() -> torch.Tensor:
            x = draw((tokens, heads, width), torch.float32, workload.distribution, generator)
            x = x * torch.exp2(2 * torch.rand(heads, 1, generator=generator))
            return x.masked_fill(draw_mask((tokens, heads, 1), 0.1, generator), 0).half()

        pages = torch.randperm(-(-tokens // 16), generator=generator)
        slot = (pages[:, None] * 16 + torch.arange(16)).reshape(-1)
        return {"k": states(), "v": states(), "slot": slot[slot < tokens].contiguous()}

    def oracle(
        self, k: torch.Tensor, v: torch.Tensor, slot: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """In fp64, gathered by the inverse of the permutation."""
        order = slot.argsort()
        caches, scales = [], []
        for x in (k.double()[order], v.double()[order]):
            scale = x.abs().amax(2).clamp(min=1e-8) / 127
            caches.append(torch.round(x / scale[:, :, None]).long())
            scales.append(scale)
        return (*caches, *scales)

    def quotients(self, name: str, inputs: Mapping[str, Value]) -> torch.Tensor | None:
        """The states of a cache divided by the scales of their heads, in the order of the slots."""
        x, slot = inputs[name[0]], inputs["slot"]
        assert isinstance(x, torch.Tensor)
        assert isinstance(slot, torch.Tensor)
        wide = x.double()[slot.argsort()]
        return wide / (wide.abs().amax(2, keepdim=True).clamp(min=1e-8) / 127)

    def reference(
        self, k: torch.Tensor, v: torch.Tensor, slot: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """Operator by operator in float32, then copied to the slots."""
        caches, scales = [], []
        for x in (k.float(), v.float()):
            scale = x.abs().amax(dim=2).clamp(min=1e-8) / 127
            codes = torch.round(x / scale[:, :, None]).to(torch.int8)
            caches.append(torch.empty_like(codes).index_copy_(0, slot, codes))
            scales.append(torch.empty_like(scale).index_copy_(0, slot, scale))
        return (*caches, *scales)

    def flops(self, dims: Dims) -> int:
        """Magnitude, comparison, scaling and rounding for each element of k and v."""
        return 8 * self.elements(dims)


PROBLEM = KvCacheStoreQuant()
