"""Product of int8 activations and packed ternary weights."""

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


class BitnetMatmul(Problem):
    """`out[i, j] = x_scale[i] * w_scale * sum over k of x[i, k] * w[j, k]`, w in -1, 0, 1.

    Byte b of a row of `code` holds columns 4b to 4b + 3, column 4b + s in bits 2s and 2s + 1; the
    weight is those two bits minus 1. Bits are 0, 1 or 2. The sum is exact in int32.
    """

    name = "bitnet_matmul"
    summary = "int8 rows times 2-bit ternary weights, scaled by row and by tensor"
    category = "Quantization"
    level = 4
    tags = ("decoder-llm", "int8", "compute-bound")
    source = "BitNet b1.58 2B4T (2560 x 6912), Falcon3-7B-1.58bit, decode of 1 to 64 rows"
    domain = "Scales are positive and finite. The two bits of a weight are never 3."

    args = (
        TensorArg("x", torch.int8, shape="m, k"),
        TensorArg("x_scale", torch.float32, shape="m"),
        TensorArg("code", torch.uint8, shape="n, k / 4"),
        ScalarArg("w_scale", float, values=(0.02, 0.5, 1.25)),
    )
    outputs = (Output("out", torch.bfloat16, shape="m, n"),)
    axes = (Axis("m", 1, 1 << 16), Axis("n", 1, 1 << 15), Axis("k", 4, 1 << 14, multiple=4))
    train = points(
        "m n k",
        full=[(2048, 6912, 2560), (16, 6912, 2560), (512, 2560, 6912), (64, 23040, 3072)],
        sim=[(64, 216, 320), (16, 864, 640), (128, 160, 432), (32, 720, 384)],
    )
    production = points(
        "m n k",
        full=[(1, 6912, 2560), (4096, 2560, 2560), (8, 640, 2560), (256, 9216, 3072)],
        sim=[(1, 1728, 640), (100, 160, 320), (8, 640, 640), (48, 288, 384)],
    )
    adversarial = ({"m": 3, "n": 5, "k": 4}, {"m": 17, "n": 3, "k": 36})
    distributions = ("normal", "uniform", "sparse", "range_ends")
    tiny_inputs = False

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x by the distribution times 40, scales, and ternary weights, half of them 0.

        An eighth of the rows of x and an eighth of the weights' rows hold one large value, so that
        sums are as long as their type allows.
        """
        m, n, k = (workload.dims[axis] for axis in "mnk")
        kind = workload.distribution
        if kind == "range_ends":
            x = draw((m, k), torch.int8, kind, generator)
        else:
            wide = 40 * draw((m, k), torch.float32, kind, generator)
            x = wide.round().clamp(-128, 127).to(torch.int8)
        full = torch.rand((m, 1), generator=generator) < 1 / 8
        x = x.masked_fill(full, 127)
        chance = torch.rand((n, k // 4, 4), generator=generator)
        bits = (chance > 0.25).int() + (chance > 0.75).int()
        bits = bits.masked_fill(torch.rand((n, 1, 1), generator=generator) < 1 / 8, 2)
        code = (bits << torch.tensor([0, 2, 4, 6])).sum(2)
        return {
            "x": x,
            "x_scale": 0.002 + 0.02 * torch.rand(m, generator=generator),
            "code": code.to(torch.uint8),
            **self.scalars(workload),
        }

    def oracle(
        self, x: torch.Tensor, x_scale: torch.Tensor, code: torch.Tensor, w_scale: float
    ) -> tuple[torch.Tensor, ...]:
        """Unpacked, in fp64."""
        parts = [code.long() // 4**s % 4 - 1 for s in range(4)]
        w = torch.stack(parts, dim=2).flatten(1).double()
        return ((x.double() @ w.mT) * x_scale.double()[:, None] * w_scale,)

    def reference(
        self, x: torch.Tensor, x_scale: torch.Tensor, code: torch.Tensor, w_scale: float
    ) -> tuple[torch.Tensor, ...]:
        """Unpacked to int8, then a product in bfloat16 parts that is exact in float32."""
        shift = torch.tensor([0, 2, 4, 6], dtype=torch.uint8, device=x.device)
        w = ((code[:, :, None] >> shift) & 3).to(torch.int8) - 1
        total = x.float() @ w.view(code.shape[0], -1).float().mT
        return ((total * (x_scale[:, None] * w_scale)).bfloat16(),)

    def flops(self, dims: Dims) -> int:
        """A product and an addition for each multiply-add."""
        return 2 * self.elements(dims)


PROBLEM = BitnetMatmul()
