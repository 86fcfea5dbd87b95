"""Dynamic quantisation of activations to int8, one scale a token."""

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

LEAST = 1e-8


class QuantizePerTokenInt8(Quantised):
    """`scale[i] = max(max|x[i]|, 1e-8) / 127`, `q[i] = round(x[i] / scale[i])`, ties to even."""

    name = "quantize_per_token_int8"
    summary = "int8 codes and a float32 scale for each row: scale = max(max|x|, 1e-8) / 127"
    category = "Quantization"
    level = 2
    tags = ("decoder-llm", "memory-bound", "int8")
    source = "hidden and intermediate sizes of Llama-2-7B, Llama-3-8B, OPT-13B and Qwen2.5-7B"
    domain = "All floating-point inputs are finite. A row may be all zeros."

    args = (TensorArg("x", torch.float16, shape="rows, cols"),)
    outputs = (
        Output("q", torch.int8, check=Check.CUSTOM, shape="rows, cols"),
        Output("scale", torch.float32, check=Check.CUSTOM, shape="rows"),
    )
    axes = (Axis("rows", 1, 1 << 20), Axis("cols", 1, 1 << 16))
    train = points(
        "rows cols",
        full=[(8192, 4096), (4096, 14336), (4096, 5120), (2048, 18944), (64, 11008)],
        sim=[(96, 4096), (24, 14336), (64, 5120), (256, 1024)],
    )
    production = points(
        "rows cols",
        full=[(8192, 3584), (4096, 8192), (1024, 28672)],
        sim=[(96, 3584), (48, 8192), (8, 28672)],
    )
    adversarial = ({"rows": 2, "cols": 1},)
    distributions = ("normal", "heavy_tail", "large", "sparse")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x float16[rows, cols]; the rows differ in size, one in ten is zero."""
        rows, cols = workload.dims["rows"], workload.dims["cols"]
        x = draw((rows, cols), torch.float32, workload.distribution, generator)
        x *= torch.exp2(2 * torch.rand(rows, 1, generator=generator))
        x[draw_mask((rows,), 0.1, generator)] = 0
        return {"x": x.half()}

    def oracle(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        scale = x.double().abs().amax(1).clamp(min=LEAST) / 127
        return torch.round(x.double() / scale[:, None]).long(), scale

    def quotients(self, name: str, inputs: Mapping[str, Value]) -> torch.Tensor | None:
        """X divided by the scale of its row."""
        x = inputs["x"]
        assert isinstance(x, torch.Tensor)
        return x.double() / (x.double().abs().amax(1, keepdim=True).clamp(min=LEAST) / 127)

    def reference(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Operator by operator in float32."""
        wide = x.float()
        scale = wide.abs().amax(dim=1).clamp(min=1e-8) / 127
        return torch.round(wide / scale[:, None]).to(torch.int8), scale

    def flops(self, dims: Dims) -> int:
        """Magnitude, comparison, scaling and rounding for each element."""
        return 4 * self.elements(dims)


PROBLEM = QuantizePerTokenInt8()
