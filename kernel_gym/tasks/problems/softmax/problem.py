"""Row-wise softmax."""

from __future__ import annotations

import torch

from kernel_gym.tasks.distributions import draw
from kernel_gym.tasks.problem import (
    Axis,
    Dims,
    Output,
    Problem,
    TensorArg,
    Value,
    points,
)
from kernel_gym.tasks.workload import Workload


class Softmax(Problem):
    """`out[i, :] = exp(x[i, :] - max) / sum(exp(x[i, :] - max))`."""

    name = "softmax"
    summary = "numerically stable softmax over the last axis of a matrix"
    category = "Reduce-and-scan"
    level = 1
    tags = ("decoder-llm", "moe", "vision", "memory-bound")
    source = "attention of BERT-large, GPT-2 and ViT-B, router of DeepSeek-V3, Llama-2 vocabulary"

    args = (TensorArg("x", torch.float16, shape="rows, cols"),)
    outputs = (Output("out", torch.float16, shape="rows, cols"),)
    axes = (Axis("rows", 1, 1 << 20), Axis("cols", 1, 1 << 18))
    train = points(
        "rows cols",
        full=[(12288, 1024), (65536, 512), (1024, 32000), (16384, 256), (38016, 197)],
        sim=[(64, 4096), (256, 1024), (8, 32000), (512, 512)],
    )
    production = points(
        "rows cols",
        full=[(256, 128256), (30000, 1500), (8192, 4096)],
        sim=[(128, 1500), (4, 50257), (300, 768)],
    )
    adversarial = ({"rows": 3, "cols": 1},)
    distributions = ("normal", "large", "structured", "constant_rows")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x float16[rows, cols]."""
        shape = (workload.dims["rows"], workload.dims["cols"])
        return {"x": draw(shape, torch.float16, workload.distribution, generator)}

    def oracle(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Shifted exponentials over their sum."""
        e = torch.exp(x.double() - x.double().amax(1, keepdim=True))
        return (e / e.sum(1, keepdim=True),)

    def reference(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        return (torch.softmax(x, dim=1),)

    def flops(self, dims: Dims) -> int:
        """Compare, subtract, exponential, add and scale for each element."""
        return 5 * self.elements(dims)


PROBLEM = Softmax()
