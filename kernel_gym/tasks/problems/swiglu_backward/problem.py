"""Gradient of the SwiGLU gate."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from kernel_gym.tasks.distributions import draw
from kernel_gym.tasks.problem import Axis, Dims, Output, Problem, TensorArg, Value, points
from kernel_gym.tasks.workload import Workload


class SwigluBackward(Problem):
    """Gradient of `out = silu(gate) * up`, `gate = x[:, :cols]`, `up = x[:, cols:]`.

    With `s = sigmoid(gate)`: `dx[:, :cols] = grad * up * s * (1 + gate * (1 - s))` and `dx[:,
    cols:] = grad * gate * s`.
    """

    name = "swiglu_backward"
    summary = "gradient of silu of the first half of each row times the second half"
    category = "Activation"
    level = 2
    tags = ("decoder-llm", "moe", "training", "memory-bound", "backward")
    source = "feed-forward layers of Llama-3-8B, Llama-3.2-1B, Qwen2.5-7B and DeepSeek-V3"

    args = (
        TensorArg("grad", torch.float16, shape="rows, cols"),
        TensorArg("x", torch.float16, shape="rows, 2 * cols"),
    )
    outputs = (Output("dx", torch.float16, shape="rows, 2 * cols"),)
    axes = (Axis("rows", 1, 1 << 20), Axis("cols", 1, 1 << 16))
    train = points(
        "rows cols",
        full=[(4096, 14336), (8192, 8192), (4096, 11008), (16384, 2048), (2048, 18944)],
        sim=[(8, 14336), (16, 8192), (64, 2048), (12, 11008)],
    )
    production = points(
        "rows cols",
        full=[(4096, 13824), (1024, 28672), (32768, 768), (8192, 12288), (4096, 18432)],
        sim=[(8, 13824), (4, 28672), (150, 768), (8, 12288), (6, 18432)],
    )
    adversarial = ({"rows": 2, "cols": 3}, {"rows": 1, "cols": 257})
    distributions = ("normal", "offset", "tiny", "heavy_tail")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x by the distribution and normal grad."""
        rows, cols = workload.dims["rows"], workload.dims["cols"]
        return {
            "grad": torch.randn((rows, cols), generator=generator).half(),
            "x": draw((rows, 2 * cols), torch.float16, workload.distribution, generator),
        }

    def oracle(self, grad: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """In fp64. The logistic function of -gate avoids the cancellation of 1 - s."""
        gate, up = x.double().chunk(2, dim=1)
        s, rest = torch.sigmoid(gate), torch.sigmoid(-gate)
        dy = grad.double()
        return (torch.cat((dy * up * s * (1 + gate * rest), dy * gate * s), dim=1),)

    def reference(self, grad: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """PyTorch's own backward of silu for one half, in float32, rounded once."""
        gate, up = x.float().chunk(2, dim=1)
        dy = grad.float()
        dgate = torch.ops.aten.silu_backward(dy * up, gate)
        return (torch.cat((dgate, dy * F.silu(gate)), dim=1).half(),)

    def flops(self, dims: Dims) -> int:
        """Eleven operations for each element of grad."""
        return 11 * self.elements(dims)


PROBLEM = SwigluBackward()
