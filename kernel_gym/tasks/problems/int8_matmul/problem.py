"""Matrix product of 8-bit codes with a scale for each token and each output channel (W8A8)."""

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


class Int8Matmul(Problem):
    """`out[i, j] = a_scale[i] * b_scale[j] * sum_k a[i, k] * b[k, j]`, summed as integers."""

    name = "int8_matmul"
    summary = "int8 product, scaled by row (token) and by column (channel), float16 out"
    category = "Quantization"
    level = 3
    tags = ("decoder-llm", "compute-bound", "int8")
    source = "W8A8 projections of Llama-2-7B, Llama-3-8B, Qwen2.5-7B and OPT-13B (SmoothQuant)"

    args = (
        TensorArg("a", torch.int8, shape="m, k"),
        TensorArg("b", torch.int8, shape="k, n"),
        TensorArg("a_scale", torch.float32, shape="m"),
        TensorArg("b_scale", torch.float32, shape="n"),
    )
    outputs = (Output("out", torch.float16, shape="m, n"),)
    axes = (Axis("m", 1, 1 << 16), Axis("n", 1, 1 << 16), Axis("k", 1, 1 << 15))
    train = points(
        "m n k",
        full=[(4096, 4096, 4096), (2048, 14336, 4096), (2048, 3584, 18944), (16, 5120, 5120)],
        sim=[(256, 256, 256), (128, 448, 256), (128, 224, 592), (16, 640, 640)],
    )
    production = points(
        "m n k",
        full=[(1024, 20480, 5120), (4096, 6144, 4096), (64, 11008, 4096)],
        sim=[(64, 640, 320), (256, 192, 256), (64, 344, 512)],
    )
    adversarial = ({"m": 3, "n": 5, "k": 1},)
    distributions = ("normal", "heavy_tail", "structured", "range_ends")
    tiny_inputs = False

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws codes, int8, and scales that undo their size and differ by a factor of 3."""
        m, n, k = (workload.dims[axis] for axis in "mnk")
        ends = workload.distribution == "range_ends"

        def codes(*shape: int) -> torch.Tensor:
            if ends:
                return draw(shape, torch.int8, "range_ends", generator)
            x = draw(shape, torch.float32, workload.distribution, generator) * 40
            return x.round().clamp(-128, 127).to(torch.int8)

        return {
            "a": codes(m, k),
            "b": codes(k, n),
            "a_scale": (0.5 + torch.rand(m, generator=generator)) / 40,
            "b_scale": (0.5 + torch.rand(n, generator=generator)) / (40 * k**0.5),
        }

    def oracle(
        self, a: torch.Tensor, b: torch.Tensor, a_scale: torch.Tensor, b_scale: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """In fp64, where the sums are exact."""
        return ((a.double() @ b.double()) * a_scale.double()[:, None] * b_scale.double(),)

    def reference(
        self, a: torch.Tensor, b: torch.Tensor, a_scale: torch.Tensor, b_scale: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """A product of the codes as float32, then both scales."""
        total = a.float() @ b.float()
        return ((total * a_scale[:, None] * b_scale).half(),)

    def flops(self, dims: Dims) -> int:
        """A product and an addition for each multiply-add, two scalings for each output."""
        return 2 * self.elements(dims) + 2 * dims["m"] * dims["n"]


PROBLEM = Int8Matmul()
