"""One step of RMSprop with momentum."""

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


class RmspropStep(Problem):
    """`s = alpha s + (1 - alpha) g^2`, `b = momentum b + g / sqrt(s + eps)`, `p = p - lr b`.

    eps is inside the root, as in TensorFlow.
    """

    name = "rmsprop_step"
    summary = "one RMSprop step with momentum; returns the new param, s and b"
    category = "Optimizer"
    level = 2
    tags = ("vision", "training", "memory-bound")
    source = "layers of EfficientNet-B0, MobileNetV2 and Inception-v3 in their authors' recipes"

    args = (
        TensorArg("param", torch.float32, shape="rows * cols"),
        TensorArg("grad", torch.float32, shape="rows * cols"),
        TensorArg("square", torch.float32, shape="rows * cols"),
        TensorArg("buffer", torch.float32, shape="rows * cols"),
        ScalarArg("lr", float, values=(0.01, 0.1, 0.001)),
        ScalarArg("alpha", float, values=(0.9, 0.99, 0.95)),
        ScalarArg("eps", float, values=(1e-3, 1e-2, 1e-5)),
        ScalarArg("momentum", float, values=(0.9, 0.5, 0.0)),
    )
    outputs = (
        Output("new_param", torch.float32, shape="rows * cols"),
        Output("new_square", torch.float32, shape="rows * cols"),
        Output("new_buffer", torch.float32, shape="rows * cols"),
    )
    axes = (Axis("rows", 1, 1 << 20), Axis("cols", 1, 1 << 17))
    train = points(
        "rows cols",
        full=[(1280, 1000), (2048, 1000), (1152, 320), (4096, 4096), (8192, 2048)],
        sim=[(64, 1000), (32, 2048), (200, 320), (96, 672)],
    )
    production = points(
        "rows cols",
        full=[(1280, 960), (2048, 1280), (6144, 4096)],
        sim=[(60, 960), (40, 1280), (18, 4096)],
    )
    adversarial = ({"rows": 1, "cols": 131},)
    distributions = ("normal", "tiny", "uniform", "offset")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws gradients by the distribution, squares such ones leave, and normal buffers."""
        shape = (self.elements(workload.dims),)
        past = draw(shape, torch.float32, workload.distribution, generator)
        return {
            "param": 0.05 * torch.randn(shape, generator=generator),
            "grad": draw(shape, torch.float32, workload.distribution, generator),
            "square": past.square() * torch.rand(shape, generator=generator),
            "buffer": 0.1 * torch.randn(shape, generator=generator),
            **self.scalars(workload),
        }

    def oracle(
        self,
        param: torch.Tensor,
        grad: torch.Tensor,
        square: torch.Tensor,
        buffer: torch.Tensor,
        lr: float,
        alpha: float,
        eps: float,
        momentum: float,
    ) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        g = grad.double()
        s = alpha * square.double() + (1 - alpha) * g.square()
        b = momentum * buffer.double() + g / (s + eps).sqrt()
        return param.double() - lr * b, s, b

    def reference(
        self,
        param: torch.Tensor,
        grad: torch.Tensor,
        square: torch.Tensor,
        buffer: torch.Tensor,
        lr: float,
        alpha: float,
        eps: float,
        momentum: float,
    ) -> tuple[torch.Tensor, ...]:
        """Operator by operator in float32."""
        s = torch.mul(square, alpha).addcmul(grad, grad, value=1 - alpha)
        b = torch.mul(buffer, momentum).addcdiv(grad, s.add(eps).sqrt())
        return param.add(b, alpha=-lr), s, b

    def flops(self, dims: Dims) -> int:
        """Eleven operations, a root and a division among them, a parameter."""
        return 11 * self.elements(dims)


PROBLEM = RmspropStep()
