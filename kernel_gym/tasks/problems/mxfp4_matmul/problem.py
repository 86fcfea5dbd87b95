"""Product of bfloat16 activations and MXFP4 weights."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from kernel_gym.tasks.distributions import draw
from kernel_gym.tasks.problem import Axis, Dims, Output, Problem, TensorArg, Value, points
from kernel_gym.tasks.workload import Workload


class Mxfp4Matmul(Problem):
    """`out = x @ w^T + bias` with `w[j, k] = value(code[j, k]) * 2^(scale[j, k // 32] - 127)`.

    Byte k of a row of `code` holds the code of column 2k in its low half and of column 2k + 1 in
    its high half. A code is a sign bit (8) and an index into `0, 0.5, 1, 1.5, 2, 3, 4, 6` (E2M1 of
    the OCP Microscaling Formats, 1.0). Sums are accumulated in float32 and rounded once. Scales are
    from 87 to 167.
    """

    name = "mxfp4_matmul"
    summary = "x @ dequantised(w)^T + bias; w has 4-bit floats and a power of two for 32 of them"
    category = "Quantization"
    level = 4
    tags = ("moe", "decoder-llm", "compute-bound", "fp4")
    source = "experts of gpt-oss-20b and 120b (2880 x 5760), MXFP4 weights of Llama-3-8B"

    args = (
        TensorArg("x", torch.bfloat16, shape="m, k"),
        TensorArg("code", torch.uint8, shape="n, k / 2"),
        TensorArg("scale", torch.uint8, shape="n, k / 32"),
        TensorArg("bias", torch.bfloat16, shape="n"),
    )
    outputs = (Output("out", torch.bfloat16, shape="m, n"),)
    axes = (Axis("m", 1, 1 << 16), Axis("n", 1, 1 << 15), Axis("k", 32, 1 << 15, multiple=32))
    train = points(
        "m n k",
        full=[(1024, 5760, 2880), (32, 5760, 2880), (2048, 4096, 4096), (64, 14336, 4096)],
        sim=[(64, 360, 480), (16, 720, 1440), (128, 256, 256), (32, 448, 512)],
    )
    production = points(
        "m n k",
        full=[(512, 2880, 2880), (1, 5760, 2880), (4096, 2880, 4096), (256, 6144, 4096)],
        sim=[(96, 180, 480), (1, 720, 1440), (100, 288, 256), (48, 384, 512)],
    )
    adversarial = ({"m": 3, "n": 5, "k": 32}, {"m": 17, "n": 3, "k": 96})
    distributions = ("normal", "uniform", "sparse", "structured")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x by the distribution, all codes, scales of five exponents, and a bias."""
        m, n, k = (workload.dims[axis] for axis in "mnk")
        middle = 127 - round(math.log2(3 * k**0.5))
        return {
            "x": draw((m, k), torch.bfloat16, workload.distribution, generator),
            "code": torch.randint(256, (n, k // 2), generator=generator).to(torch.uint8),
            "scale": torch.randint(middle - 2, middle + 3, (n, k // 32), generator=generator).to(
                torch.uint8
            ),
            "bias": (0.5 * torch.randn(n, generator=generator)).bfloat16(),
        }

    def oracle(
        self, x: torch.Tensor, code: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """Dequantised in fp64."""
        sizes = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], dtype=torch.float64, device=x.device)
        values = torch.cat((sizes, -sizes))
        halves = torch.stack((code.long() % 16, code.long() // 16), dim=2)
        blocks = values[halves].view(code.shape[0], -1, 32)
        w = blocks * torch.exp2(scale.double() - 127)[:, :, None]
        return (x.double() @ w.flatten(1).mT + bias.double(),)

    def reference(
        self, x: torch.Tensor, code: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """Dequantised to bfloat16, which is exact, then one product."""
        sizes = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
        values = torch.tensor([*sizes, *(-s for s in sizes)], dtype=x.dtype, device=x.device)
        halves = torch.stack((code & 15, code >> 4), dim=2).int()
        blocks = values[halves].view(code.shape[0], -1, 32)
        w = blocks * torch.exp2(scale.to(x.dtype) - 127)[:, :, None]
        return (F.linear(x, w.flatten(1), bias),)

    def flops(self, dims: Dims) -> int:
        """A product and an addition for each multiply-add."""
        return 2 * self.elements(dims)


PROBLEM = Mxfp4Matmul()
