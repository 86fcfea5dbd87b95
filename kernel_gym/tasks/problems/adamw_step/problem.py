"""One step of AdamW."""

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


class AdamwStep(Problem):
    """AdamW: Adam with bias correction and decoupled weight decay.

    `m = beta1 m + (1 - beta1) g`, `v = beta2 v + (1 - beta2) g^2`, and `p = p (1 - lr decay) - lr
    (m / (1 - beta1^step)) / (sqrt(v / (1 - beta2^step)) + eps)`.
    """

    name = "adamw_step"
    summary = "one AdamW step; returns the new param, m and v"
    category = "Optimizer"
    level = 2
    tags = ("decoder-llm", "training", "memory-bound")
    source = "weights of GPT-2 and GPT-2-XL, Llama-2-7B and Qwen2.5-0.5B, float32 master copies"

    args = (
        TensorArg("param", torch.float32, shape="rows * cols"),
        TensorArg("grad", torch.float32, shape="rows * cols"),
        TensorArg("m", torch.float32, shape="rows * cols"),
        TensorArg("v", torch.float32, shape="rows * cols"),
        ScalarArg("lr", float, values=(1e-3, 3e-4, 1e-2)),
        ScalarArg("beta1", float, values=(0.9, 0.95, 0.5)),
        ScalarArg("beta2", float, values=(0.999, 0.95, 0.99)),
        ScalarArg("eps", float, values=(1e-8, 1e-5, 1e-6)),
        ScalarArg("decay", float, values=(0.1, 0.01, 0.5)),
        ScalarArg("step", int),
    )
    outputs = (
        Output("new_param", torch.float32, shape="rows * cols"),
        Output("new_m", torch.float32, shape="rows * cols"),
        Output("new_v", torch.float32, shape="rows * cols"),
    )
    axes = (Axis("rows", 1, 1 << 20), Axis("cols", 1, 1 << 17))
    train = points(
        "rows cols",
        full=[(4096, 4096), (768, 3072), (1600, 6400), (4864, 896), (2752, 4096)],
        sim=[(64, 1024), (96, 768), (40, 1600), (54, 896)],
    )
    production = points(
        "rows cols",
        full=[(5120, 5120), (3072, 1024), (3584, 4096)],
        sim=[(16, 5120), (60, 1024), (20, 4096)],
    )
    adversarial = ({"rows": 1, "cols": 131},)
    distributions = ("normal", "tiny", "uniform", "offset")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws gradients of about 1e-3 by the distribution, and the state such ones leave.

        Scalars are float32 values, so that `1 - beta` is exact in float32, too.
        """
        shape = (self.elements(workload.dims),)
        grad, past = (
            1e-3 * draw(shape, torch.float32, workload.distribution, generator) for _ in range(2)
        )
        factor = torch.rand(shape, generator=generator)
        return {
            "param": 0.02 * torch.randn(shape, generator=generator),
            "grad": grad,
            "m": 0.3 * past,
            "v": 0.01 * past.square() * factor,
            **self.scalars(workload),
            "step": int(torch.randint(2, 50, (), generator=generator)),
        }

    def oracle(
        self,
        param: torch.Tensor,
        grad: torch.Tensor,
        m: torch.Tensor,
        v: torch.Tensor,
        lr: float,
        beta1: float,
        beta2: float,
        eps: float,
        decay: float,
        step: int,
    ) -> tuple[torch.Tensor, ...]:
        """As the paper's algorithm 2 reads (Loshchilov and Hutter, 2019)."""
        g = grad.double()
        m_new = beta1 * m.double() + (1 - beta1) * g
        v_new = beta2 * v.double() + (1 - beta2) * g.square()
        root = (v_new / (1 - beta2**step)).sqrt() + eps
        kept = param.double() * (1 - lr * decay)
        return kept - lr * (m_new / (1 - beta1**step)) / root, m_new, v_new

    def reference(
        self,
        param: torch.Tensor,
        grad: torch.Tensor,
        m: torch.Tensor,
        v: torch.Tensor,
        lr: float,
        beta1: float,
        beta2: float,
        eps: float,
        decay: float,
        step: int,
    ) -> tuple[torch.Tensor, ...]:
        """As PyTorch's single-tensor implementation spells it, in float32."""
        m_new = torch.lerp(m, grad, 1 - beta1)
        v_new = torch.mul(v, beta2).addcmul(grad, grad, value=1 - beta2)
        root = (v_new.sqrt() / (1 - beta2**step) ** 0.5).add(eps)
        kept = torch.mul(param, 1 - lr * decay)
        return kept.addcdiv(m_new, root, value=-lr / (1 - beta1**step)), m_new, v_new

    def flops(self, dims: Dims) -> int:
        """Fourteen operations, a root and a division among them, a parameter."""
        return 14 * self.elements(dims)


PROBLEM = AdamwStep()
