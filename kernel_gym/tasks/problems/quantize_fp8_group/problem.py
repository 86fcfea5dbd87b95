"""Dynamic quantisation of activations to fp8, one scale for each 128 neighbours."""

from __future__ import annotations

from collections.abc import Mapping

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

GROUP = 128
LEAST = 1e-10


class QuantizeFp8Group(Quantised):
    """`scale = max(max|x|, 1e-10) / 240` by group of 128 columns, `q = fp8(x / scale)`."""

    name = "quantize_fp8_group"
    summary = "e4m3fnuz codes and a float32 scale for each group of 128 columns"
    category = "Quantization"
    level = 2
    tags = ("moe", "decoder-llm", "memory-bound", "fp8")
    source = "activations of DeepSeek-V3 (hidden 7168, experts 2048) and Qwen3-235B-A22B"
    domain = "All floating-point inputs are finite. A group may be all zeros."

    args = (TensorArg("x", torch.bfloat16, shape="rows, cols"),)
    outputs = (
        Output("q", torch.float8_e4m3fnuz, check=Check.CUSTOM, shape="rows, cols"),
        Output("scale", torch.float32, check=Check.CUSTOM, shape="rows, cols / 128"),
    )
    axes = (Axis("rows", 1, 1 << 20), Axis("cols", GROUP, 1 << 16, multiple=GROUP))
    train = points(
        "rows cols",
        full=[(8192, 7168), (16384, 2048), (8192, 4096), (4096, 18432), (32768, 1536)],
        sim=[(48, 7168), (128, 2048), (96, 4096), (256, 1536)],
    )
    production = points(
        "rows cols",
        full=[(8192, 5120), (32768, 512), (4096, 12288)],
        sim=[(64, 5120), (384, 512), (24, 12288)],
    )
    adversarial = ({"rows": 2, "cols": 128},)
    distributions = ("normal", "heavy_tail", "large", "sparse")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x bfloat16[rows, cols]; groups differ in size, one in ten is zero."""
        rows, cols = workload.dims["rows"], workload.dims["cols"]
        x = draw((rows, cols // GROUP, GROUP), torch.float32, workload.distribution, generator)
        x *= torch.exp2(3 * torch.rand(rows, cols // GROUP, 1, generator=generator))
        x[draw_mask((rows, cols // GROUP), 0.1, generator)] = 0
        return {"x": x.view(rows, cols).bfloat16()}

    def oracle(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """In fp64, rounded to the nearest code."""
        quotients, scale = self._divided(x)
        return quotients.to(self.outputs[0].dtype).double(), scale

    def quotients(self, name: str, inputs: Mapping[str, Value]) -> torch.Tensor | None:
        """X divided by the scale of its group."""
        x = inputs["x"]
        assert isinstance(x, torch.Tensor)
        return self._divided(x)[0]

    def _divided(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns quotients [rows, cols] and scales [rows, cols / 128] in fp64."""
        groups = x.double().view(x.shape[0], -1, GROUP)
        scale = groups.abs().amax(2).clamp(min=LEAST) / torch.finfo(self.outputs[0].dtype).max
        return (groups / scale[:, :, None]).view(x.shape), scale

    def reference(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Operator by operator in float32."""
        groups = x.float().view(x.shape[0], -1, 128)
        scale = groups.abs().amax(dim=2).clamp(min=1e-10) / 240
        q = (groups / scale[:, :, None]).clamp(-240, 240)
        return q.to(torch.float8_e4m3fnuz).view(x.shape), scale

    def flops(self, dims: Dims) -> int:
        """Magnitude, comparison, scaling and conversion for each element."""
        return 4 * self.elements(dims)


PROBLEM = QuantizeFp8Group()
