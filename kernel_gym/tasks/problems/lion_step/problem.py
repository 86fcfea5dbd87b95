"""One step of Lion, whose update is a sign."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from kernel_gym.tasks.distributions import draw
from kernel_gym.tasks.problem import (
    Axis,
    Check,
    Dims,
    Output,
    Problem,
    ScalarArg,
    TensorArg,
    Value,
    points,
)
from kernel_gym.tasks.workload import Workload

ROUNDINGS = 8
"""By how many units of rounding a float32 result may be off, and a sign's argument be zero."""


class LionStep(Problem):
    """`c = beta1 m + (1 - beta1) g`, then `p = p (1 - lr decay) - lr sign(c)`.

    Then `m = beta2 m + (1 - beta2) g`. sign(0) is 0.
    """

    name = "lion_step"
    summary = "one Lion step; returns the new param and m"
    category = "Optimizer"
    level = 2
    tags = ("vision", "diffusion", "training", "memory-bound")
    source = "layers of ViT-L/16, BERT-large and the Stable Diffusion U-Net, as the paper trains"

    args = (
        TensorArg("param", torch.float32, shape="rows * cols"),
        TensorArg("grad", torch.float32, shape="rows * cols"),
        TensorArg("m", torch.float32, shape="rows * cols"),
        ScalarArg("lr", float, values=(1e-4, 3e-4, 1e-3)),
        ScalarArg("beta1", float, values=(0.9, 0.95, 0.8)),
        ScalarArg("beta2", float, values=(0.99, 0.98, 0.9)),
        ScalarArg("decay", float, values=(1.0, 0.1, 3.0)),
    )
    outputs = (
        Output("new_param", torch.float32, check=Check.CUSTOM, shape="rows * cols"),
        Output("new_m", torch.float32, shape="rows * cols"),
    )
    axes = (Axis("rows", 1, 1 << 16), Axis("cols", 1, 1 << 17))
    train = points(
        "rows cols",
        full=[(4096, 1024), (1024, 4096), (3072, 1024), (30522, 1024), (1280, 5120)],
        sim=[(80, 1024), (20, 4096), (60, 1024), (25, 2560)],
    )
    production = points(
        "rows cols",
        full=[(1000, 1024), (10240, 1280), (640, 5760)],
        sim=[(50, 1024), (32, 1280), (16, 5760)],
    )
    adversarial = ({"rows": 1, "cols": 131},)
    distributions = ("normal", "tiny", "uniform", "sparse")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws gradients and their mean by the distribution; sparse ones are both zero at times.

        Scalars are float32 values, so that `1 - beta` is exact in float32, too.
        """
        count = (self.elements(workload.dims),)
        grad, past = (draw(count, torch.float32, workload.distribution, generator) for _ in "gm")
        return {
            "param": 0.02 * torch.randn(count, generator=generator),
            "grad": 0.1 * grad,
            "m": 0.05 * past,
            **self.scalars(workload),
        }

    def oracle(
        self,
        param: torch.Tensor,
        grad: torch.Tensor,
        m: torch.Tensor,
        lr: float,
        beta1: float,
        beta2: float,
        decay: float,
    ) -> tuple[torch.Tensor, ...]:
        """As algorithm 2 of the paper reads (Chen et al., arXiv:2302.06675)."""
        g, mean = grad.double(), m.double()
        c = beta1 * mean + (1 - beta1) * g
        kept = param.double() * (1 - lr * decay)
        return kept - lr * c.sign(), beta2 * mean + (1 - beta2) * g

    def reference(
        self,
        param: torch.Tensor,
        grad: torch.Tensor,
        m: torch.Tensor,
        lr: float,
        beta1: float,
        beta2: float,
        decay: float,
    ) -> tuple[torch.Tensor, ...]:
        """As the authors' PyTorch version spells it, in float32."""
        kept = torch.mul(param, 1 - lr * decay)
        update = torch.mul(m, beta1).add(grad, alpha=1 - beta1).sign()
        return kept.add(update, alpha=-lr), torch.mul(m, beta2).add(grad, alpha=1 - beta2)

    def mismatches(
        self, name: str, found: torch.Tensor, inputs: Mapping[str, Value], expected: torch.Tensor
    ) -> torch.Tensor:
        """Parameters off by rounding; where c is zero but for rounding, any sign will do."""
        if name != "new_param":
            return super().mismatches(name, found, inputs, expected)
        lr, beta1, decay = (float(inputs[key]) for key in ("lr", "beta1", "decay"))
        param, grad, m = (torch.as_tensor(inputs[key]).double() for key in ("param", "grad", "m"))
        near = ROUNDINGS * torch.finfo(torch.float32).eps / 2
        parts = beta1 * m, (1 - beta1) * grad
        unsure = (parts[0] + parts[1]).abs() <= near * (parts[0].abs() + parts[1].abs())
        kept = param * (1 - lr * decay)
        allowed = near * (kept.abs() + lr)
        right = (found.double() - expected).abs() <= allowed
        for sign in (-1, 0, 1):
            right |= unsure & ((found.double() - (kept - lr * sign)).abs() <= allowed)
        return ~right

    def flops(self, dims: Dims) -> int:
        """Six products, a sign and three additions a parameter."""
        return 10 * self.elements(dims)


PROBLEM = LionStep()
