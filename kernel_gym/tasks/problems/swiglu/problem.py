"""SwiGLU gate of a feed-forward layer."""

from __future__ import annotations

import torch
import torch.nn.functional as F

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


class Swiglu(Problem):
    """`out = silu(x[:, :cols]) * x[:, cols:]`."""

    name = "swiglu"
    summary = "silu of the first half of each row times the second half"
    category = "Fusion"
    level = 1
    tags = ("decoder-llm", "moe", "memory-bound")
    source = "feed-forward layers of Llama-2-7B, Llama-3-8B, Qwen2.5-7B, Mixtral-8x7B, DeepSeek-V3"

    args = (TensorArg("x", torch.bfloat16, shape="rows, 2 * cols"),)
    outputs = (Output("out", torch.bfloat16, shape="rows, cols"),)
    axes = (Axis("rows", 1, 1 << 20), Axis("cols", 1, 1 << 16))
    train = points(
        "rows cols",
        full=[(4096, 11008), (4096, 14336), (2048, 18944), (16384, 2048), (32, 14336)],
        sim=[(16, 11008), (12, 14336), (64, 3072), (128, 2048)],
    )
    production = points(
        "rows cols",
        full=[(4096, 13824), (1024, 28672), (8192, 1536)],
        sim=[(12, 13824), (32, 5632), (128, 1536)],
    )
    adversarial = ({"rows": 2, "cols": 3},)
    distributions = ("normal", "large", "tiny", "offset")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x bfloat16[rows, 2 * cols]."""
        shape = (workload.dims["rows"], 2 * workload.dims["cols"])
        return {"x": draw(shape, torch.bfloat16, workload.distribution, generator)}

    def oracle(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Gate times sigmoid of the gate times the other half."""
        gate, up = x.double().chunk(2, dim=1)
        return (gate * torch.sigmoid(gate) * up,)

    def reference(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The activation and the product in float32, rounded once."""
        gate, up = x.chunk(2, dim=1)
        return ((F.silu(gate.float()) * up.float()).to(torch.bfloat16),)

    def flops(self, dims: Dims) -> int:
        """Exponential, add, divide and two products for each output."""
        return 5 * self.elements(dims)


PROBLEM = Swiglu()
