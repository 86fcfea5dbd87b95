"""Logarithm of the sum of exponentials of each row."""

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


class Logsumexp(Problem):
    """`out[i] = log(exp(x[i, 0]) + ... + exp(x[i, cols - 1]))`."""

    name = "logsumexp"
    summary = "numerically stable log(sum(exp(x))) of each row"
    category = "Reduce-and-scan"
    level = 2
    tags = ("decoder-llm", "vision", "memory-bound", "reduction")
    source = "z-loss of PaLM, router of Switch-base, rows of CLIP and SimCLR, Llama-3-8B logits"

    args = (TensorArg("x", torch.float16, shape="rows, cols"),)
    outputs = (Output("out", torch.float16, shape="rows"),)
    axes = (Axis("rows", 1, 1 << 20), Axis("cols", 1, 1 << 18))
    train = points(
        "rows cols",
        full=[(1024, 32000), (512, 128256), (8192, 8192), (65536, 128), (4096, 32768)],
        sim=[(16, 32000), (8, 64128), (128, 4096), (4096, 128)],
    )
    production = points(
        "rows cols",
        full=[(2048, 50257), (1024, 65536), (131072, 64)],
        sim=[(10, 50257), (40, 8192), (6000, 64)],
    )
    adversarial = ({"rows": 3, "cols": 1},)
    distributions = ("normal", "large", "structured", "constant_rows")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x float16[rows, cols]."""
        shape = (workload.dims["rows"], workload.dims["cols"])
        return {"x": draw(shape, torch.float16, workload.distribution, generator)}

    def oracle(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Shifted by the maximum."""
        top = x.double().amax(1)
        return (top + torch.log(torch.exp(x.double() - top[:, None]).sum(1)),)

    def reference(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """One PyTorch call in float32, rounded once."""
        return (torch.logsumexp(x.float(), dim=1).half(),)

    def flops(self, dims: Dims) -> int:
        """Compare, subtract, exponential and add for each element."""
        return 4 * self.elements(dims)


PROBLEM = Logsumexp()
