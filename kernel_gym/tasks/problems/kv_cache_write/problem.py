"""Writes new keys and values to their slots of a paged cache, in place."""

from __future__ import annotations

import torch

from kernel_gym.tasks.distributions import draw
from kernel_gym.tasks.problem import Axis, Check, Dims, Output, Problem, TensorArg, Value, points
from kernel_gym.tasks.workload import Workload


class KvCacheWrite(Problem):
    """Row `slot[t]` of the caches becomes token t's key and value, for every t with `slot[t] >= 0`.

    Slot s is row `s % 16` of page `s // 16`. Tokens with slot -1 are padding and are not written.
    No other slot occurs twice. Rows of the caches without a token keep their values. The caches are
    written in place and returned.
    """

    name = "kv_cache_write"
    summary = "new keys and values scattered to slots of paged caches in place; slot -1 is skipped"
    category = "Index"
    level = 2
    tags = ("decoder-llm", "moe", "memory-bound", "scatter", "in-place")
    source = "key and value heads of Llama-3-8B, Qwen2.5-7B, Llama-2-7B and Gemma-2-9B (vLLM pages)"

    args = (
        TensorArg("k", torch.float16, shape="tokens, heads, head_dim"),
        TensorArg("v", torch.float16, shape="tokens, heads, head_dim"),
        TensorArg("slot", torch.int64, shape="tokens"),
        TensorArg("k_cache", torch.float16, in_place=True, shape="pages, 16, heads, head_dim"),
        TensorArg("v_cache", torch.float16, in_place=True, shape="pages, 16, heads, head_dim"),
    )
    outputs = (
        Output(
            "new_k_cache",
            torch.float16,
            check=Check.EXACT,
            shape="pages, 16, heads, head_dim",
            place="k_cache",
        ),
        Output(
            "new_v_cache",
            torch.float16,
            check=Check.EXACT,
            shape="pages, 16, heads, head_dim",
            place="v_cache",
        ),
    )
    axes = (
        Axis("tokens", 1, 1 << 18),
        Axis("heads", 1, 128),
        Axis("head_dim", 16, 256, multiple=16),
        Axis("pages", 1, 1 << 16),
    )
    train = points(
        "tokens heads head_dim pages",
        full=[
            (8192, 8, 128, 1024),
            (16384, 4, 128, 2048),
            (4096, 32, 128, 512),
            (256, 8, 128, 4096),
        ],
        sim=[(128, 8, 128, 16), (256, 4, 64, 32), (48, 32, 64, 6), (96, 8, 256, 8)],
    )
    production = points(
        "tokens heads head_dim pages",
        full=[
            (4096, 16, 256, 512),
            (32768, 2, 128, 4096),
            (4096, 10, 128, 300),
            (64, 8, 128, 2048),
        ],
        sim=[(64, 16, 256, 6), (400, 2, 128, 40), (100, 10, 64, 10), (16, 8, 128, 20)],
    )
    adversarial = (
        {"tokens": 1, "heads": 3, "head_dim": 48, "pages": 1},
        {"tokens": 40, "heads": 1, "head_dim": 16, "pages": 1},
    )
    distributions = ("normal", "uniform", "sparse", "range_ends")
    strided = False

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws states and old caches, and slots in random order of which an eighth is -1."""
        tokens, heads, width, pages = (workload.dims[axis.name] for axis in self.axes)
        new, old = (tokens, heads, width), (pages, 16, heads, width)
        kind = workload.distribution
        slot = torch.full((tokens,), -1)
        used = min(tokens, 16 * pages)
        slot[:used] = torch.randperm(16 * pages, generator=generator)[:used]
        slot = slot[torch.randperm(tokens, generator=generator)]
        padding = torch.rand(tokens, generator=generator) < 1 / 8
        return {
            "k": draw(new, torch.float16, kind, generator),
            "v": draw(new, torch.float16, kind, generator),
            "slot": slot.masked_fill(padding, -1),
            "k_cache": draw(old, torch.float16, kind, generator),
            "v_cache": draw(old, torch.float16, kind, generator),
        }

    def oracle(
        self,
        k: torch.Tensor,
        v: torch.Tensor,
        slot: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """Copies of the caches with some rows replaced, in fp64."""
        kept = slot >= 0
        out = []
        for new, old in ((k, k_cache), (v, v_cache)):
            cache = old.double().flatten(0, 1)
            cache[slot[kept]] = new.double()[kept]
            out.append(cache.view(old.shape))
        return tuple(out)

    def reference(
        self,
        k: torch.Tensor,
        v: torch.Tensor,
        slot: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """One indexed copy for each cache, into a copy with a spare row for padding."""
        rows = k_cache.shape[0] * k_cache.shape[1]
        at = torch.where(slot < 0, rows, slot)
        for new, cache in ((k, k_cache), (v, v_cache)):
            flat = cache.flatten(0, 1)
            flat.copy_(torch.cat((flat, flat[:1])).index_copy_(0, at, new)[:rows])
        return k_cache, v_cache

    def bytes(self, dims: Dims) -> int:
        """Reads the slots, and moves the rows of half of them; an eighth at random is padding."""
        rows = min(dims["tokens"], 16 * dims["pages"]) // 2
        return 8 * dims["tokens"] + 8 * rows * dims["heads"] * dims["head_dim"]

    def flops(self, dims: Dims) -> int:
        """None."""
        return 0


PROBLEM = KvCacheWrite()
