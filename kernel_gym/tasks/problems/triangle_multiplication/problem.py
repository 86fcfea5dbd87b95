"""Triangle multiplication, outgoing edges: the pair update of structure prediction."""

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


class TriangleMultiplication(Problem):
    """`out[i, j, c] = sigmoid(gate[i, j, c]) * sum_k a[i, k, c] * b[j, k, c]`."""

    name = "triangle_multiplication"
    summary = "gated sum over the third residue k of a[i, k] * b[j, k], channel by channel"
    category = "LinearAlgebra"
    level = 4
    tags = ("protein", "compute-bound")
    source = "pair stacks of AlphaFold 2 and 3 (128 channels), OpenFold and ESMFold (128)"

    args = (
        TensorArg("a", torch.bfloat16, shape="residues, residues, channels"),
        TensorArg("b", torch.bfloat16, shape="residues, residues, channels"),
        TensorArg("gate", torch.bfloat16, shape="residues, residues, channels"),
    )
    outputs = (Output("out", torch.bfloat16, shape="residues, residues, channels"),)
    axes = (Axis("residues", 1, 2048), Axis("channels", 1, 512))
    train = points(
        "residues channels",
        full=[(256, 128), (384, 128), (512, 64), (320, 128)],
        sim=[(40, 64), (32, 128), (64, 32), (48, 32)],
    )
    production = points(
        "residues channels",
        full=[(448, 128), (291, 64), (640, 32)],
        sim=[(37, 64), (56, 32), (24, 128)],
    )
    adversarial = ({"residues": 1, "channels": 3}, {"residues": 5, "channels": 7})
    distributions = ("normal", "uniform", "sparse", "structured")

    def elements(self, dims: Dims) -> int:
        """Multiply-adds."""
        return dims["residues"] ** 3 * dims["channels"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws a, b and gate bfloat16, b over sqrt(residues)."""
        n, channels = workload.dims["residues"], workload.dims["channels"]
        kind = workload.distribution
        a, b, gate = (draw((n, n, channels), torch.float32, kind, generator) for _ in range(3))
        return {"a": a.bfloat16(), "b": (b * n**-0.5).bfloat16(), "gate": gate.bfloat16()}

    def oracle(
        self, a: torch.Tensor, b: torch.Tensor, gate: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """A matrix product for each channel, in fp64."""
        product = a.double().permute(2, 0, 1) @ b.double().permute(2, 1, 0)
        return (torch.sigmoid(gate.double()) * product.permute(1, 2, 0),)

    def reference(
        self, a: torch.Tensor, b: torch.Tensor, gate: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """As OpenFold writes it: channels first, a batched product, back, gated."""
        product = torch.bmm(a.permute(2, 0, 1), b.permute(2, 1, 0))
        return (torch.sigmoid(gate) * product.permute(1, 2, 0).contiguous(),)

    def flops(self, dims: Dims) -> int:
        """A product and an addition for each multiply-add, about 4 for each gate."""
        return 2 * self.elements(dims) + 4 * dims["residues"] ** 2 * dims["channels"]


PROBLEM = TriangleMultiplication()
