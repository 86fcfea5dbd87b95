"""Unpacks a 4-bit weight in the layout of AWQ checkpoints to float16."""

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

GROUP = 128
ORDER = (0, 2, 4, 6, 1, 3, 5, 7)


class DequantW4(Problem):
    """`out[i, j] = scales[i // 128, j] * (code[i, j] - zero[i // 128, j])`.

    Nibble p (0 the lowest) of `qweight[i, w]` is the code of column `8 w + (0, 2, 4, 6, 1, 3, 5,
    7)[p]`; `qzeros[g, w]` packs the zeros alike.
    """

    name = "dequant_w4"
    summary = "4-bit weight in AWQ's interleaved layout, groups of 128 rows, to float16"
    category = "Quantization"
    level = 2
    tags = ("decoder-llm", "memory-bound", "int4", "layout")
    source = "AWQ checkpoints of Llama-2-7B, Llama-3-8B, Qwen2.5-7B and Mistral-7B"

    args = (
        TensorArg("qweight", torch.int32, shape="rows, cols / 8"),
        TensorArg("scales", torch.float16, shape="rows / 128, cols"),
        TensorArg("qzeros", torch.int32, shape="rows / 128, cols / 8"),
    )
    outputs = (Output("out", torch.float16, shape="rows, cols"),)
    axes = (
        Axis("rows", GROUP, 1 << 16, multiple=GROUP),
        Axis("cols", 8, 1 << 17, multiple=8),
    )
    train = points(
        "rows cols",
        full=[(4096, 14336), (4096, 11008), (18944, 3584), (14336, 4096)],
        sim=[(512, 1024), (256, 1376), (640, 448), (1024, 512)],
    )
    production = points(
        "rows cols",
        full=[(5120, 13824), (8192, 28672), (4096, 6144)],
        sim=[(256, 1728), (128, 3584), (512, 768)],
    )
    adversarial = ({"rows": 128, "cols": 8},)
    distributions = ("normal", "uniform", "tiny", "heavy_tail")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws random codes and zeros, and scales float16 by the distribution."""
        rows, cols = workload.dims["rows"], workload.dims["cols"]

        def words(count: int) -> torch.Tensor:
            shape = (count, cols // 8)
            return torch.randint(-(1 << 31), 1 << 31, shape, generator=generator).int()

        return {
            "qweight": words(rows),
            "scales": draw((rows // GROUP, cols), torch.float16, workload.distribution, generator),
            "qzeros": words(rows // GROUP),
        }

    def oracle(
        self, qweight: torch.Tensor, scales: torch.Tensor, qzeros: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """Nibble by nibble, in fp64."""
        out = torch.empty(qweight.shape[0], scales.shape[1], dtype=torch.float64).to(scales.device)
        for place, column in enumerate(ORDER):
            codes = (qweight >> (4 * place)) & 15
            zeros = ((qzeros >> (4 * place)) & 15).repeat_interleave(GROUP, 0)
            scale = scales[:, column::8].double().repeat_interleave(GROUP, 0)
            out[:, column::8] = (codes - zeros) * scale
        return (out,)

    def reference(
        self, qweight: torch.Tensor, scales: torch.Tensor, qzeros: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """Unpacked in order of the columns, then scaled by group."""
        rows, cols = qweight.shape[0], scales.shape[1]
        column = torch.arange(8, device=qweight.device, dtype=torch.int32)
        shifts = 4 * (column // 2 + 4 * (column % 2))
        codes = (qweight[:, :, None] >> shifts) & 15
        zeros = (qzeros[:, :, None] >> shifts) & 15
        centred = codes.reshape(-1, 128, cols) - zeros.reshape(-1, 1, cols)
        return ((centred.half() * scales[:, None, :]).reshape(rows, cols),)

    def flops(self, dims: Dims) -> int:
        """A subtraction and a product for each weight."""
        return 2 * self.elements(dims)


PROBLEM = DequantW4()
