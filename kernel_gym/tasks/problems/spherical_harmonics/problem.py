"""Real spherical harmonics up to degree 2."""

from __future__ import annotations

import torch

from kernel_gym.tasks.distributions import draw
from kernel_gym.tasks.problem import (
    Axis,
    Dims,
    Output,
    Problem,
    ScalarArg,
    TensorArg,
    Value,
    points,
)
from kernel_gym.tasks.workload import Workload


class SphericalHarmonics(Problem):
    """The nine real harmonics of the direction `(x, y, z) = vector / (|vector| + eps)`.

    In this order, with r3 = sqrt(3), r5 = sqrt(5), r15 = sqrt(15): `1, r3 x, r3 y, r3 z, r15 x z,
    r15 x y, r5 (y^2 - (x^2 + z^2) / 2), r15 y z, r15 / 2 (z^2 - x^2)`. This is e3nn's order with
    "component" normalisation. Computed in float32; the zero vector is legal.
    """

    name = "spherical_harmonics"
    summary = "nine real spherical harmonics (degrees 0 to 2, e3nn's order) of each 3-D vector"
    category = "Math"
    level = 2
    tags = ("protein", "graph", "memory-bound")
    source = "edges of NequIP and MACE (water, 3BPA), SE(3)-Transformer on QM9, Equiformer on OC20"

    args = (
        TensorArg("vector", torch.float32, shape="edges, 3"),
        ScalarArg("eps", float, values=(1e-4, 1e-2, 1e-3)),
    )
    outputs = (Output("out", torch.float32, shape="edges, 9"),)
    axes = (Axis("edges", 1, 1 << 24),)
    train = points(
        "edges",
        full=[(1000000,), (250000,), (4000000,), (65536,)],
        sim=[(20000,), (9000,), (30000,), (4096,)],
    )
    production = points(
        "edges",
        full=[
            *((123456,), (2000000,), (800000,), (31250,), (512000,), (90000,), (1500000,)),
            *((3000000,), (48000,), (700123,), (200704,), (2400000,)),
        ],
        sim=[
            *((12345,), (25000,), (6000,), (1250,), (16000,), (22222,), (3000,)),
            *((28000,), (7777,), (10240,), (18500,), (2048,)),
        ],
    )
    adversarial = ({"edges": 1}, {"edges": 67})
    distributions = ("normal", "tiny", "uniform", "sparse")

    def elements(self, dims: Dims) -> int:
        """Components of all outputs."""
        return 9 * dims["edges"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws vectors by the distribution; "sparse" holds zero vectors."""
        shape = (workload.dims["edges"], 3)
        return {
            "vector": draw(shape, torch.float32, workload.distribution, generator),
            **self.scalars(workload),
        }

    def oracle(self, vector: torch.Tensor, eps: float) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        wide = vector.double()
        x, y, z = (wide / (wide.norm(dim=1, keepdim=True) + eps)).unbind(1)
        r3, r5, r15 = 3**0.5, 5**0.5, 15**0.5
        flat = [torch.ones_like(x), r3 * x, r3 * y, r3 * z, r15 * x * z, r15 * x * y]
        flat += [r5 * (y * y - (x * x + z * z) / 2), r15 * y * z, r15 / 2 * (z * z - x * x)]
        return (torch.stack(flat, dim=1),)

    def reference(self, vector: torch.Tensor, eps: float) -> tuple[torch.Tensor, ...]:
        """The same in float32."""
        length = torch.linalg.vector_norm(vector, dim=1, keepdim=True)
        x, y, z = (vector / (length + eps)).unbind(1)
        r3, r5, r15 = 3**0.5, 5**0.5, 15**0.5
        flat = [torch.ones_like(x), r3 * x, r3 * y, r3 * z, r15 * x * z, r15 * x * y]
        flat += [r5 * (y * y - (x * x + z * z) / 2), r15 * y * z, r15 / 2 * (z * z - x * x)]
        return (torch.stack(flat, dim=1),)

    def flops(self, dims: Dims) -> int:
        """Some thirty operations for each vector, a root and divisions among them."""
        return 30 * dims["edges"]


PROBLEM = SphericalHarmonics()
