"""Matrix product of fp8 operands with block scales, as DeepSeek-V3 trains and serves."""

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

BLOCK = 128


class Fp8BlockMatmul(Problem):
    """`out = dequant(a) @ dequant(b)^T`.

    `a[i, k]` is scaled by `a_scale[i, k // 128]`, `b[j, k]` by `b_scale[j // 128, k // 128]`.
    """

    name = "fp8_block_matmul"
    summary = "fp8 (e4m3fnuz) product with 1 x 128 scales of a and 128 x 128 scales of b"
    category = "Quantization"
    level = 4
    tags = ("moe", "decoder-llm", "compute-bound", "fp8")
    source = "projections and experts of DeepSeek-V3 and Qwen3-Coder-480B (block-scaled fp8)"

    args = (
        TensorArg("a", torch.float8_e4m3fnuz, shape="m, k"),
        TensorArg("a_scale", torch.float32, shape="m, k / 128"),
        TensorArg("b", torch.float8_e4m3fnuz, shape="n, k"),
        TensorArg("b_scale", torch.float32, shape="ceil(n / 128), k / 128"),
    )
    outputs = (Output("out", torch.bfloat16, shape="m, n"),)
    axes = (
        Axis("m", 1, 1 << 16),
        Axis("n", 1, 1 << 15),
        Axis("k", BLOCK, 1 << 15, multiple=BLOCK),
    )
    train = points(
        "m n k",
        full=[(4096, 7168, 2048), (2048, 4096, 7168), (4096, 1536, 7168), (64, 7168, 16384)],
        sim=[(256, 448, 128), (128, 256, 512), (192, 192, 384), (32, 448, 1024)],
    )
    production = points(
        "m n k",
        full=[(4096, 24576, 1536), (1024, 6144, 2560), (2048, 576, 7168)],
        sim=[(128, 768, 128), (96, 384, 256), (128, 144, 512)],
    )
    adversarial = ({"m": 3, "n": 5, "k": 128},)
    distributions = ("normal", "uniform", "sparse", "structured")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws codes up to the format's end and scales within a factor of 8."""
        m, n, k = (workload.dims[axis] for axis in "mnk")
        code = self.args[0].dtype
        end = torch.finfo(code).max

        def codes(*shape: int) -> torch.Tensor:
            x = draw(shape, torch.float32, workload.distribution, generator) * end / 4
            return x.clamp(-end, end).to(code)

        def scales(*shape: int) -> torch.Tensor:
            return torch.exp2(3 * torch.rand(shape, generator=generator)) * 2 / end

        return {
            "a": codes(m, k),
            "a_scale": scales(m, k // BLOCK),
            "b": codes(n, k),
            "b_scale": scales(-(-n // BLOCK), k // BLOCK) * k**-0.5,
        }

    def oracle(
        self, a: torch.Tensor, a_scale: torch.Tensor, b: torch.Tensor, b_scale: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """Block of k by block, in fp64."""
        out = torch.zeros(a.shape[0], b.shape[0], dtype=torch.float64, device=a.device)
        column = torch.arange(b.shape[0], device=a.device) // BLOCK
        for i in range(a_scale.shape[1]):
            part = slice(i * BLOCK, (i + 1) * BLOCK)
            product = a[:, part].double() @ b[:, part].double().t()
            out += product * a_scale[:, i, None].double() * b_scale[column, i].double()
        return (out,)

    def reference(
        self, a: torch.Tensor, a_scale: torch.Tensor, b: torch.Tensor, b_scale: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """Both operands dequantised to bfloat16, then one product."""
        n = b.shape[0]
        left = a.float() * a_scale.repeat_interleave(128, dim=1)
        wide = b_scale.repeat_interleave(128, dim=0)[:n].repeat_interleave(128, dim=1)
        return (F.linear(left.bfloat16(), (b.float() * wide).bfloat16()),)

    def flops(self, dims: Dims) -> int:
        """A product and an addition for each multiply-add."""
        return 2 * self.elements(dims)


PROBLEM = Fp8BlockMatmul()
