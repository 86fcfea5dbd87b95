"""Gate and up projection of a gated MLP with their activation."""

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


class SwigluMlp(Problem):
    """`out = silu(x @ gate) * (x @ up)`."""

    name = "swiglu_mlp"
    summary = "silu(x @ gate) * (x @ up) in float16: two products and an activation"
    category = "Fusion"
    level = 4
    tags = ("decoder-llm", "moe", "compute-bound")
    source = "MLPs of Llama-2-7B, Llama-3-8B, Qwen2.5-0.5B and Phi-3-mini"

    args = (
        TensorArg("x", torch.float16, shape="m, k"),
        TensorArg("gate", torch.float16, shape="k, n"),
        TensorArg("up", torch.float16, shape="k, n"),
    )
    outputs = (Output("out", torch.float16, shape="m, n"),)
    axes = (Axis("m", 1, 1 << 16), Axis("n", 1, 1 << 16), Axis("k", 1, 1 << 15))
    train = points(
        "m n k",
        full=[(2048, 11008, 4096), (2048, 14336, 4096), (8192, 4864, 896), (32, 8192, 3072)],
        sim=[(128, 344, 256), (64, 448, 256), (256, 304, 112), (32, 512, 192)],
    )
    production = points(
        "m n k",
        full=[(1024, 18944, 3584), (4096, 8960, 1536), (128, 14336, 4096)],
        sim=[(64, 592, 224), (128, 280, 192), (16, 448, 512)],
    )
    adversarial = ({"m": 3, "n": 5, "k": 1},)
    distributions = ("normal", "uniform", "sparse", "structured")
    tiny_inputs = False

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x [m, k] and weights [k, n] over sqrt(k), float16."""
        m, n, k = (workload.dims[axis] for axis in "mnk")
        kind = workload.distribution
        x = draw((m, k), torch.float16, kind, generator)
        gate, up = (draw((k, n), torch.float32, kind, generator) * k**-0.5 for _ in range(2))
        return {"x": x, "gate": gate.half(), "up": up.half()}

    def oracle(
        self, x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        g = x.double() @ gate.double()
        return (g * torch.sigmoid(g) * (x.double() @ up.double()),)

    def reference(
        self, x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """As decoder models write it."""
        return (F.silu(x @ gate) * (x @ up),)

    def flops(self, dims: Dims) -> int:
        """Two products, and about 5 for each output."""
        return 4 * self.elements(dims) + 5 * dims["m"] * dims["n"]


PROBLEM = SwigluMlp()
