"""Matrix product with 4-bit weights in the layout of GPTQ checkpoints (W4A16)."""

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


class W4a16Matmul(Problem):
    """`out = x @ w`, `w[i, j] = scales[i // 128, j] * (code[i, j] - zero[i // 128, j] - 1)`.

    Code `[i, j]` is nibble `i % 8` (0 the lowest) of `qweight[i // 8, j]`; zero `[g, j]` is nibble
    `j % 8` of `qzeros[g, j // 8]`.
    """

    name = "w4a16_matmul"
    summary = "x @ dequantised 4-bit weight, GPTQ layout with groups of 128 rows"
    category = "Quantization"
    level = 4
    tags = ("decoder-llm", "memory-bound", "int4")
    source = "GPTQ checkpoints of Llama-2-7B, Llama-3-8B, Qwen2.5-7B and Mistral-7B"

    args = (
        TensorArg("x", torch.float16, shape="m, k"),
        TensorArg("qweight", torch.int32, shape="k / 8, n"),
        TensorArg("scales", torch.float16, shape="k / 128, n"),
        TensorArg("qzeros", torch.int32, shape="k / 128, n / 8"),
    )
    outputs = (Output("out", torch.float16, shape="m, n"),)
    axes = (
        Axis("m", 1, 1 << 14),
        Axis("n", 8, 1 << 16, multiple=8),
        Axis("k", 128, 1 << 15, multiple=128),
    )
    train = points(
        "m n k",
        full=[(16, 4096, 4096), (64, 11008, 4096), (32, 3584, 18944), (512, 14336, 4096)],
        sim=[(16, 512, 512), (64, 344, 512), (32, 224, 1152), (128, 448, 256)],
    )
    production = points(
        "m n k",
        full=[(8, 6144, 4096), (128, 4096, 14336), (1, 5120, 5120)],
        sim=[(8, 768, 512), (64, 256, 896), (1, 640, 640)],
    )
    adversarial = ({"m": 1, "n": 8, "k": 128},)
    distributions = ("normal", "uniform", "heavy_tail", "structured")

    def elements(self, dims: Dims) -> int:
        """Multiply-adds, and the unpacking of the weight."""
        return (dims["m"] + 32) * dims["n"] * dims["k"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x float16[m, k], random codes and zeros, scales within a factor of 3."""
        m, n, k = (workload.dims[axis] for axis in "mnk")

        def words(*shape: int) -> torch.Tensor:
            return torch.randint(-(1 << 31), 1 << 31, shape, generator=generator).int()

        scales = (0.5 + torch.rand(k // GROUP, n, generator=generator)) / (6 * k**0.5)
        return {
            "x": draw((m, k), torch.float16, workload.distribution, generator),
            "qweight": words(k // 8, n),
            "scales": scales.half(),
            "qzeros": words(k // GROUP, n // 8),
        }

    def oracle(
        self, x: torch.Tensor, qweight: torch.Tensor, scales: torch.Tensor, qzeros: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """The weight unpacked nibble by nibble, in fp64."""
        k, n = x.shape[1], scales.shape[1]
        weight = torch.empty(k, n, dtype=torch.float64, device=x.device)
        zeros = torch.empty(scales.shape, dtype=torch.float64, device=x.device)
        for i in range(8):
            weight[i::8] = ((qweight >> (4 * i)) & 15).double()
            zeros[:, i::8] = ((qzeros >> (4 * i)) & 15).double() + 1
        weight = weight.view(-1, GROUP, n) - zeros[:, None, :]
        weight = (weight * scales.double()[:, None, :]).view(k, n)
        return (x.double() @ weight,)

    def reference(
        self, x: torch.Tensor, qweight: torch.Tensor, scales: torch.Tensor, qzeros: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """Unpacked into a float16 weight, then one product."""
        k, n = x.shape[1], scales.shape[1]
        shifts = torch.arange(0, 32, 4, device=x.device, dtype=torch.int32)
        codes = (qweight[:, None, :] >> shifts[None, :, None]) & 15
        zeros = ((qzeros[:, :, None] >> shifts) & 15).reshape(scales.shape) + 1
        centred = codes.reshape(-1, 128, n) - zeros[:, None, :]
        weight = centred.half() * scales[:, None, :]
        return (x @ weight.reshape(k, n),)

    def flops(self, dims: Dims) -> int:
        """A product and an addition for each multiply-add."""
        return 2 * dims["m"] * dims["n"] * dims["k"]


PROBLEM = W4a16Matmul()
