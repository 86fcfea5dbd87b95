"""One step of stochastic gradient descent with Nesterov momentum, in place."""

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


class SgdMomentumStep(Problem):
    """`d = g + decay p`, `v = momentum v + d`, `p = p - lr (d + momentum v)`, on flat vectors.

    `param` and `velocity` are written in place and returned.
    """

    name = "sgd_momentum_step"
    summary = "one SGD step with Nesterov momentum and weight decay, in place"
    category = "Optimizer"
    level = 1
    tags = ("vision", "training", "memory-bound", "in-place")
    source = "layers of ResNet-50, VGG-16 and ViT-B in torchvision's training recipes"

    args = (
        TensorArg("param", torch.float32, in_place=True, shape="rows * cols"),
        TensorArg("grad", torch.float32, shape="rows * cols"),
        TensorArg("velocity", torch.float32, in_place=True, shape="rows * cols"),
        ScalarArg("lr", float, values=(0.1, 0.01, 0.5)),
        ScalarArg("momentum", float, values=(0.9, 0.5, 0.99)),
        ScalarArg("decay", float, values=(0.05, 1e-3, 0.2)),
    )
    outputs = (
        Output("new_param", torch.float32, shape="rows * cols", place="param"),
        Output("new_velocity", torch.float32, shape="rows * cols", place="velocity"),
    )
    axes = (Axis("rows", 1, 1 << 16), Axis("cols", 1, 1 << 17))
    train = points(
        "rows cols",
        full=[(1000, 25088), (512, 4608), (1000, 2048), (3072, 768), (4096, 4096)],
        sim=[(4, 25088), (20, 4608), (50, 2048), (96, 768)],
    )
    production = points(
        "rows cols",
        full=[(2048, 1024), (768, 3072), (512, 2304)],
        sim=[(80, 1024), (30, 3072), (40, 2304)],
    )
    adversarial = ({"rows": 1, "cols": 131},)
    distributions = ("normal", "tiny", "uniform", "sparse")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws gradients by the distribution, normal velocities and weights of 0.05."""
        count = (self.elements(workload.dims),)
        return {
            "param": 0.05 * torch.randn(count, generator=generator),
            "grad": 0.1 * draw(count, torch.float32, workload.distribution, generator),
            "velocity": 0.1 * torch.randn(count, generator=generator),
            **self.scalars(workload),
        }

    def oracle(
        self,
        param: torch.Tensor,
        grad: torch.Tensor,
        velocity: torch.Tensor,
        lr: float,
        momentum: float,
        decay: float,
    ) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        d = grad.double() + decay * param.double()
        v = momentum * velocity.double() + d
        return param.double() - lr * (d + momentum * v), v

    def reference(
        self,
        param: torch.Tensor,
        grad: torch.Tensor,
        velocity: torch.Tensor,
        lr: float,
        momentum: float,
        decay: float,
    ) -> tuple[torch.Tensor, ...]:
        """As PyTorch's single-tensor implementation spells it, in float32."""
        d = grad.add(param, alpha=decay)
        velocity.mul_(momentum).add_(d)
        param.add_(d.add(velocity, alpha=momentum), alpha=-lr)
        return param, velocity

    def flops(self, dims: Dims) -> int:
        """Four products and four additions a parameter."""
        return 8 * self.elements(dims)


PROBLEM = SgdMomentumStep()
