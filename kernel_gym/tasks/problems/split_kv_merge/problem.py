"""Merges the partial results of attention over parts of the keys."""

from __future__ import annotations

import torch

from kernel_gym.tasks.distributions import draw
from kernel_gym.tasks.problem import Axis, Dims, Output, Problem, TensorArg, Value, points
from kernel_gym.tasks.shared.scalars import one_of
from kernel_gym.tasks.workload import Workload


class SplitKvMerge(Problem):
    """`out = sum_s exp(lse[s]) * part[s] / sum_s exp(lse[s])`, and `total = log sum_s exp(lse[s])`.

    `part[b, h, s]` is the normalised result of attention over the s-th part of the keys, `lse` the
    logarithm of its denominator. A part without keys has `lse = -inf` and any finite values; at
    least one part of each head has keys. `lse` may exceed 88, where exp overflows.
    """

    name = "split_kv_merge"
    summary = "weighted sum of partial attention results by their log-sum-exp, and the total one"
    category = "Attention"
    level = 2
    tags = ("decoder-llm", "moe", "memory-bound")
    source = "split-KV decoding of Llama-3-8B, Llama-3-70B, Qwen2.5-7B and DeepSeek-V3 (width 512)"
    domain = (
        "All inputs are finite, except that lse is -inf for a part without keys. At "
        "least one part of each head has keys."
    )

    args = (
        TensorArg("part", torch.float32, shape="batch, heads, splits, head_dim"),
        TensorArg("lse", torch.float32, shape="batch, heads, splits"),
    )
    outputs = (
        Output("out", torch.float16, shape="batch, heads, head_dim"),
        Output("total", torch.float32, shape="batch, heads"),
    )
    axes = (
        Axis("batch", 1, 1024),
        Axis("heads", 1, 128),
        Axis("splits", 1, 128),
        Axis("head_dim", 16, 512, multiple=16),
    )
    train = points(
        "batch heads splits head_dim",
        full=[(64, 32, 16, 128), (16, 64, 32, 128), (128, 28, 8, 128), (32, 128, 8, 512)],
        sim=[(4, 32, 16, 64), (2, 16, 32, 128), (8, 28, 4, 96), (1, 32, 8, 512)],
    )
    production = points(
        "batch heads splits head_dim",
        full=[(256, 32, 4, 128), (1, 64, 128, 128), (8, 40, 64, 128), (64, 128, 4, 512)],
        sim=[(8, 16, 4, 128), (1, 16, 100, 64), (2, 20, 32, 128), (2, 16, 4, 512)],
    )
    adversarial = (
        {"batch": 1, "heads": 3, "splits": 1, "head_dim": 16},
        {"batch": 2, "heads": 1, "splits": 37, "head_dim": 48},
    )
    distributions = ("normal", "uniform", "large", "sparse")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws results by the distribution, lse around 5 or 100, a sixth of the parts empty."""
        shape = tuple(workload.dims[axis.name] for axis in self.axes)
        part = draw(shape, torch.float32, workload.distribution, generator)
        middle = one_of("middle", (5.0, 100.0, -40.0), workload)
        lse = middle + 2 * torch.randn(shape[:3], generator=generator)
        empty = torch.rand(shape[:3], generator=generator) < 1 / 6
        empty[..., 0] &= shape[2] > 1
        empty[..., -1] = False
        return {"part": part.clamp(-6e4, 6e4), "lse": lse.masked_fill(empty, float("-inf"))}

    def oracle(self, part: torch.Tensor, lse: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        total = torch.logsumexp(lse.double(), dim=2)
        weights = torch.exp(lse.double() - total[:, :, None])
        return (weights[..., None] * part.double()).sum(2), total

    def reference(self, part: torch.Tensor, lse: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """A softmax over the parts and a product, in float32."""
        weights = torch.softmax(lse, dim=2)
        out = torch.matmul(weights[:, :, None, :], part)[:, :, 0, :]
        return out.half(), torch.logsumexp(lse, dim=2)

    def flops(self, dims: Dims) -> int:
        """A product and a sum for each element of the parts, and an exponential for each part."""
        return 2 * self.elements(dims) + dims["batch"] * dims["heads"] * dims["splits"]


PROBLEM = SplitKvMerge()
