"""Quantisation to MXFP8: 8-bit floats with a shared power of two for 32 of them."""

from __future__ import annotations

import torch

from kernel_gym.tasks.distributions import draw, draw_mask
from kernel_gym.tasks.problem import (
    Axis,
    Check,
    Dims,
    Output,
    TensorArg,
    Value,
    points,
)
from kernel_gym.tasks.shared.quantised import Quantised
from kernel_gym.tasks.workload import Workload


class QuantizeMxfp8Ocp(Quantised):
    """E4M3 codes and E8M0 scales of blocks of 32 columns (OCP Microscaling Formats, 1.0).

    With m the largest magnitude of a block, `scale = floor(log2(m)) - 8 + 127`, at least 0, or 0
    for a block of zeros. `q = fp8(x / 2^(scale - 127))`, rounded to the nearest value, of two
    equally near ones to the even code, after it is limited to -448 .. 448.
    """

    name = "quantize_mxfp8_ocp"
    summary = "e4m3fn codes and an E8M0 scale for each block of 32 columns"
    category = "Quantization"
    level = 3
    tags = ("decoder-llm", "moe", "memory-bound", "fp8")
    source = "activations of Llama-3-8B, DeepSeek-V3 and Qwen3-30B-A3B on MI350 (MX formats)"

    args = (TensorArg("x", torch.float16, shape="rows, cols"),)
    outputs = (
        Output("q", torch.float8_e4m3fn, check=Check.CUSTOM, shape="rows, cols"),
        Output("scale", torch.uint8, check=Check.EXACT, shape="rows, cols / 32"),
    )
    axes = (Axis("rows", 1, 1 << 18), Axis("cols", 32, 1 << 16, multiple=32))
    train = points(
        "rows cols",
        full=[(8192, 4096), (4096, 7168), (8192, 2048), (2048, 14336)],
        sim=[(64, 2048), (24, 7168), (64, 2880), (256, 512)],
    )
    production = points(
        "rows cols",
        full=[(4096, 8192), (16384, 3072), (32, 18432), (1024, 28672)],
        sim=[(24, 8192), (96, 1536), (2, 18432), (6, 28672)],
    )
    adversarial = ({"rows": 3, "cols": 32}, {"rows": 1, "cols": 96})
    distributions = ("normal", "heavy_tail", "tiny", "sparse")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x by the distribution, blocks of different size and some blocks of zeros."""
        rows, cols = workload.dims["rows"], workload.dims["cols"]
        x = draw((rows, cols // 32, 32), torch.float32, workload.distribution, generator)
        size = torch.exp2(torch.randint(-3, 4, (rows, cols // 32, 1), generator=generator).float())
        zero = draw_mask((rows, cols // 32, 1), 0.05, generator)
        return {"x": (x * size).masked_fill(zero, 0.0).half().view(rows, cols)}

    def oracle(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Rounded to three bits after the leading one, in fp64."""
        blocks = x.double().view(x.shape[0], -1, 32)
        top = blocks.abs().amax(2)
        exponent = torch.frexp(top).exponent - 1
        scale = torch.where(top > 0, exponent - 8 + 127, 0).clamp(min=0)
        part = blocks * torch.exp2(127.0 - scale.double())[:, :, None]
        unit = torch.exp2(torch.frexp(part).exponent.clamp(min=-5).double() - 4)
        q = ((part / unit).round() * unit).clamp(-448, 448)
        return q.view(x.shape), scale.long()

    def reference(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Operator by operator in float32."""
        blocks = x.float().view(x.shape[0], -1, 32)
        top = blocks.abs().amax(dim=2)
        exponent = torch.frexp(top).exponent + 118
        scale = torch.where(top > 0, exponent, 0).clamp(min=0)
        part = torch.ldexp(blocks, (127 - scale)[:, :, None]).clamp(-448, 448)
        return part.to(torch.float8_e4m3fn).view(x.shape), scale.to(torch.uint8)

    def flops(self, dims: Dims) -> int:
        """Magnitude, comparison, scaling and rounding for each element."""
        return 4 * self.elements(dims)


PROBLEM = QuantizeMxfp8Ocp()
