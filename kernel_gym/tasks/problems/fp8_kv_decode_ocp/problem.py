"""Attention to a paged fp8 cache, for devices that compute with OCP floats."""

from __future__ import annotations

import torch

from kernel_gym.tasks.problem import TensorArg, Value
from kernel_gym.tasks.problems.fp8_kv_decode.problem import Fp8KvDecode
from kernel_gym.tasks.workload import Workload


class Fp8KvDecodeOcp(Fp8KvDecode):
    """`softmax(scale * q k^T) v` by head, over the first `length[b]` keys of sequence b.

    Key j of sequence b is row `j % 16` of page `table[b, j // 16]` of `k_cache`, times `k_scale`;
    values alike, times `v_scale`. Query head h uses key head `h // group`. Lengths are from 1 to 16
    * pages; entries of the table beyond a sequence's last page may be any page. Scores may exceed
    88, where exp overflows in float32.
    """

    name = "fp8_kv_decode_ocp"
    summary = "one-token attention to a paged fp8 (e4m3fn) KV cache with one scale for each cache"

    args = (
        Fp8KvDecode.args[0],
        TensorArg("k_cache", torch.float8_e4m3fn, shape="batch * pages, 16, kv_heads, head_dim"),
        TensorArg("v_cache", torch.float8_e4m3fn, shape="batch * pages, 16, kv_heads, head_dim"),
        *Fp8KvDecode.args[3:],
    )

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws as for the other format, and converts the caches."""
        drawn = super().inputs(workload, generator)
        for name in ("k_cache", "v_cache"):
            cache = drawn[name]
            assert isinstance(cache, torch.Tensor)
            drawn[name] = cache.float().to(torch.float8_e4m3fn)
        return drawn


PROBLEM = Fp8KvDecodeOcp()
