"""Product with weights of which two of four in a row are kept."""

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


class Matmul2To4(Problem):
    """`out = x @ w^T`; of each four columns of w two are stored, in `value` and `place`.

    Group g of row j holds columns 4g to 4g + 3. Its kept weights are `value[j, 2g]` and
    `value[j, 2g + 1]`; their columns within the group are the low two bits and the next two bits of
    a nibble: the low half of byte `place[j, g // 2]` for an even g, the high half for an odd one.
    The first column is below the second; the other two weights are zero.
    """

    name = "matmul_2to4"
    summary = "dense rows times weights with 2:4 structured sparsity, in float16"
    category = "MatMul"
    level = 4
    tags = ("decoder-llm", "compute-bound", "sparse")
    source = "pruned layers of Llama-2-7B and Llama-3-8B (SparseGPT, Wanda 2:4), ViT-L/16"

    args = (
        TensorArg("x", torch.float16, shape="m, k"),
        TensorArg("value", torch.float16, shape="n, k / 2"),
        TensorArg("place", torch.uint8, shape="n, k / 8"),
    )
    outputs = (Output("out", torch.float16, shape="m, n"),)
    axes = (Axis("m", 1, 1 << 16), Axis("n", 1, 1 << 15), Axis("k", 8, 1 << 15, multiple=8))
    train = points(
        "m n k",
        full=[(2048, 4096, 4096), (32, 14336, 4096), (4096, 4096, 1024), (512, 11008, 4096)],
        sim=[(64, 256, 256), (16, 448, 512), (128, 128, 192), (32, 344, 384)],
    )
    production = points(
        "m n k",
        full=[(1, 4096, 4096), (8192, 1024, 4096), (64, 4096, 11008), (256, 6144, 4096)],
        sim=[(1, 1024, 512), (256, 64, 256), (24, 128, 688), (48, 192, 256)],
    )
    adversarial = ({"m": 3, "n": 5, "k": 8}, {"m": 17, "n": 3, "k": 40})
    distributions = ("normal", "uniform", "sparse", "structured")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x by the distribution, weights over the root of their fan-in, and columns."""
        m, n, k = (workload.dims[axis] for axis in "mnk")
        pairs = torch.tensor([0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110])
        nibble = pairs[torch.randint(6, (n, k // 8, 2), generator=generator)]
        value = torch.randn((n, k // 2), generator=generator) * (2 / k) ** 0.5
        return {
            "x": draw((m, k), torch.float16, workload.distribution, generator),
            "value": value.half(),
            "place": (nibble[:, :, 0] + 16 * nibble[:, :, 1]).to(torch.uint8),
        }

    def oracle(
        self, x: torch.Tensor, value: torch.Tensor, place: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """The weights scattered to a dense matrix, in fp64."""
        code = place.long()
        nibble = torch.stack((code % 16, code // 16), dim=2).flatten(1)
        column = torch.stack((nibble % 4, nibble // 4), dim=2)
        first = 4 * torch.arange(nibble.shape[1], device=x.device)[:, None]
        dense = torch.zeros((len(value), x.shape[1]), dtype=torch.float64, device=x.device)
        dense.scatter_(1, (first + column).flatten(1), value.double())
        return (x.double() @ dense.mT,)

    def reference(
        self, x: torch.Tensor, value: torch.Tensor, place: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """The weights scattered to a dense matrix, then one product."""
        halves = torch.stack((place & 15, place >> 4), dim=2)
        column = torch.stack((halves & 3, halves >> 2), dim=3).view(len(value), -1, 2)
        first = torch.arange(0, x.shape[1], 4, device=x.device)[:, None]
        dense = torch.zeros((len(value), x.shape[1]), dtype=x.dtype, device=x.device)
        dense.scatter_(1, (first + column).view(value.shape), value)
        return (F.linear(x, dense),)

    def flops(self, dims: Dims) -> int:
        """A product and an addition for each kept weight and row."""
        return self.elements(dims)


PROBLEM = Matmul2To4()
