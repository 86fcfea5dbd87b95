"""Quantisation to MXFP4: 4-bit floats with a shared power of two for 32 of them."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from kernel_gym.tasks.distributions import draw, draw_mask
from kernel_gym.tasks.problem import Axis, Check, Dims, Output, Problem, TensorArg, Value, points
from kernel_gym.tasks.workload import Workload


class QuantizeMxfp4(Problem):
    """E2M1 codes and E8M0 scales of blocks of 32 columns (OCP Microscaling Formats, 1.0).

    With m the largest magnitude of a block, `scale = floor(log2(m)) - 2 + 127`, at least 0, or 0
    for a block of zeros; the block's step is `2^(scale - 127)`. A code is the sign bit 8 and the
    index of `|x| / step` in `0, 0.5, 1, 1.5, 2, 3, 4, 6`: the nearest one, of two equally near ones
    the even index, at most 7. Byte j of a row holds the code of column 2j in its low half and of
    column 2j + 1 in its high half. The sign of zeros is free.
    """

    name = "quantize_mxfp4"
    summary = "packed E2M1 codes and an E8M0 scale for each block of 32 columns"
    category = "Quantization"
    level = 3
    tags = ("decoder-llm", "moe", "memory-bound", "fp4")
    source = "activations and weights of gpt-oss-20b (2880), Llama-3-8B and DeepSeek-V3"

    args = (TensorArg("x", torch.float16, shape="rows, cols"),)
    outputs = (
        Output("code", torch.uint8, check=Check.CUSTOM, shape="rows, cols / 2"),
        Output("scale", torch.uint8, check=Check.EXACT, shape="rows, cols / 32"),
    )
    axes = (Axis("rows", 1, 1 << 18), Axis("cols", 32, 1 << 16, multiple=32))
    train = points(
        "rows cols",
        full=[(8192, 2880), (8192, 4096), (4096, 7168), (5760, 2880), (2048, 14336)],
        sim=[(64, 2880), (64, 2048), (24, 7168), (256, 512)],
    )
    production = points(
        "rows cols",
        full=[(4096, 8192), (16384, 2048), (32, 18432), (1024, 28672), (12288, 1536)],
        sim=[(24, 8192), (96, 1536), (2, 18432), (6, 28672), (100, 768)],
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
        """The nearest of eight magnitudes, found in a sorted list of their middles."""
        blocks = x.double().view(x.shape[0], -1, 32)
        top = blocks.abs().amax(2)
        exponent = torch.frexp(top).exponent - 1
        scale = torch.where(top > 0, exponent - 2 + 127, 0).clamp(min=0)
        size = blocks.abs() * torch.exp2(127.0 - scale.double())[:, :, None]
        up = torch.tensor([0.25, 1.25, 2.5, 5.0], dtype=torch.float64, device=x.device)
        even = torch.tensor([0.75, 1.75, 3.5], dtype=torch.float64, device=x.device)
        index = (size[..., None] > up).sum(-1) + (size[..., None] >= even).sum(-1)
        code = (index + 8 * (blocks < 0)).view(x.shape[0], -1, 2)
        return code[..., 0] + 16 * code[..., 1], scale.long()

    def reference(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The same in float32."""
        blocks = x.float().view(x.shape[0], -1, 32)
        top = blocks.abs().amax(dim=2)
        exponent = torch.frexp(top).exponent + 124
        scale = torch.where(top > 0, exponent, 0).clamp(min=0)
        size = torch.ldexp(blocks.abs(), (127 - scale)[:, :, None])
        up = torch.tensor([0.25, 1.25, 2.5, 5.0], device=x.device)
        even = torch.tensor([0.75, 1.75, 3.5], device=x.device)
        index = torch.bucketize(size, up) + torch.bucketize(size, even, right=True)
        code = (index + 8 * (blocks < 0)).view(x.shape[0], -1, 2)
        return (code[..., 0] + 16 * code[..., 1]).to(torch.uint8), scale.to(torch.uint8)

    def mismatches(
        self, name: str, found: torch.Tensor, inputs: Mapping[str, Value], expected: torch.Tensor
    ) -> torch.Tensor:
        """Codes must be equal, but the sign of a zero is free."""

        def halves(packed: torch.Tensor) -> torch.Tensor:
            both = torch.stack((packed.long() % 16, packed.long() // 16))
            return torch.where(both == 8, 0, both)

        return (halves(found) != halves(expected)).any(0)

    def flops(self, dims: Dims) -> int:
        """Magnitude, comparison, scaling and rounding for each element."""
        return 4 * self.elements(dims)


PROBLEM = QuantizeMxfp4()
