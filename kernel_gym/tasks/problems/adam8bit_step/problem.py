"""One step of Adam with 8-bit states."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from kernel_gym.tasks.codes import wrong_codes
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


class Adam8bitStep(Problem):
    """Adam on blocks of 256 parameters whose moments are 8-bit codes with a scale for each block.

    Old moments are `m = m_code / 127 * m_scale` and `v = (v_code / 255)^2 * v_scale`. Then
    `m = beta1 m + (1 - beta1) g`, `v = beta2 v + (1 - beta2) g^2` and
    `p = p - lr * (m / (1 - beta1^step) / (sqrt(v / (1 - beta2^step)) + eps) + decay * p)`. New
    scales are the largest magnitudes of m and v in the block, at least 1e-30; new codes are
    `round(127 m / m_scale)` and `round(255 sqrt(v / v_scale))`. Computed in float32; inputs are
    finite. All values of a block may be zero.
    """

    name = "adam8bit_step"
    summary = "AdamW with int8 and uint8 moments in blocks of 256; returns param, codes and scales"
    category = "Optimizer"
    level = 4
    tags = ("decoder-llm", "training", "memory-bound", "int8")
    source = "weights of GPT-2, GPT-2-XL, Llama-2-7B and Qwen2.5-0.5B (block-wise 8-bit optimizers)"

    args = (
        TensorArg("param", torch.float32, shape="blocks * 256"),
        TensorArg("grad", torch.float32, shape="blocks * 256"),
        TensorArg("m_code", torch.int8, shape="blocks, 256"),
        TensorArg("m_scale", torch.float32, shape="blocks"),
        TensorArg("v_code", torch.uint8, shape="blocks, 256"),
        TensorArg("v_scale", torch.float32, shape="blocks"),
        ScalarArg("lr", float, values=(1e-3, 3e-4, 1e-2)),
        ScalarArg("beta1", float, values=(0.9, 0.95, 0.5)),
        ScalarArg("beta2", float, values=(0.999, 0.95, 0.98)),
        ScalarArg("eps", float, values=(1e-8, 1e-6, 1e-5)),
        ScalarArg("decay", float, values=(0.1, 0.01, 0.3)),
        ScalarArg("step", int, values=(2, 10, 1000, 37)),
    )
    outputs = (
        Output("new_param", torch.float32, shape="blocks * 256"),
        Output("new_m_code", torch.int8, check=Check.CUSTOM, shape="blocks, 256"),
        Output("new_m_scale", torch.float32, shape="blocks"),
        Output("new_v_code", torch.uint8, check=Check.CUSTOM, shape="blocks, 256"),
        Output("new_v_scale", torch.float32, shape="blocks"),
    )
    axes = (Axis("blocks", 1, 1 << 20),)
    train = points(
        "blocks",
        full=[(65536,), (9216,), (40000,), (17024,), (43008,)],
        sim=[(256,), (300,), (176,), (432,)],
    )
    production = points(
        "blocks",
        full=[
            *((102400,), (12288,), (57344,), (2304,), (150771,), (19456,), (34816,), (6144,)),
            *((86016,), (3072,), (74240,), (27648,)),
        ],
        sim=[
            *((100,), (384,), (225,), (150,), (320,), (64,), (201,), (288,)),
            *((352,), (410,), (129,), (275,)),
        ],
    )
    adversarial = ({"blocks": 1}, {"blocks": 3})
    distributions = ("normal", "tiny", "uniform", "heavy_tail")

    def elements(self, dims: Dims) -> int:
        """Parameters."""
        return 256 * dims["blocks"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws gradients of about 1e-3 by the distribution, and states that such ones leave.

        A sixth of the blocks never had a gradient: all their moments are zero.
        """
        blocks = workload.dims["blocks"]
        idle = (torch.rand(blocks, generator=generator) < 1 / 6).repeat_interleave(256)
        grad, past = (
            1e-3 * draw((blocks * 256,), torch.float32, workload.distribution, generator)
            for _ in range(2)
        )
        grad, past = grad.masked_fill(idle, 0.0), past.masked_fill(idle, 0.0)
        m = 0.3 * past.view(blocks, 256)
        v = 0.05 * m.square() + 0.1 * m.square().amax(1, keepdim=True)
        m_scale, v_scale = m.abs().amax(1).clamp(min=1e-30), v.amax(1).clamp(min=1e-30)

        return {
            "param": 0.02 * torch.randn(blocks * 256, generator=generator),
            "grad": grad,
            "m_code": (127 * m / m_scale[:, None]).round().to(torch.int8),
            "m_scale": m_scale,
            "v_code": (255 * (v / v_scale[:, None]).sqrt()).round().to(torch.uint8),
            "v_scale": v_scale,
            **self.scalars(workload),
        }

    def oracle(
        self,
        param: torch.Tensor,
        grad: torch.Tensor,
        m_code: torch.Tensor,
        m_scale: torch.Tensor,
        v_code: torch.Tensor,
        v_scale: torch.Tensor,
        lr: float,
        beta1: float,
        beta2: float,
        eps: float,
        decay: float,
        step: int,
    ) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        g = grad.double().view(-1, 256)
        m = beta1 * m_code.double() / 127 * m_scale.double()[:, None] + (1 - beta1) * g
        old = (v_code.double() / 255).square() * v_scale.double()[:, None]
        v = beta2 * old + (1 - beta2) * g.square()
        update = m / (1 - beta1**step) / ((v / (1 - beta2**step)).sqrt() + eps)
        p = param.double()
        new_m, new_v = (t.abs().amax(1).clamp(min=1e-30) for t in (m, v))
        m_new = (127 * m / new_m[:, None]).round().long()
        v_new = (255 * (v / new_v[:, None]).sqrt()).round().long()
        return p - lr * (update.view(-1) + decay * p), m_new, new_m, v_new, new_v

    def reference(
        self,
        param: torch.Tensor,
        grad: torch.Tensor,
        m_code: torch.Tensor,
        m_scale: torch.Tensor,
        v_code: torch.Tensor,
        v_scale: torch.Tensor,
        lr: float,
        beta1: float,
        beta2: float,
        eps: float,
        decay: float,
        step: int,
    ) -> tuple[torch.Tensor, ...]:
        """Operator by operator in float32."""
        g = grad.view(-1, 256)
        m = torch.lerp(m_code * (m_scale[:, None] / 127), g, 1 - beta1)
        v = (v_code / 255.0).square().mul_(v_scale[:, None] * beta2)
        v = v.addcmul_(g, g, value=1 - beta2)
        root = (v.sqrt() / (1 - beta2**step) ** 0.5).add_(eps).view(-1)
        p = param.mul(1 - lr * decay).addcdiv_(m.view(-1), root, value=-lr / (1 - beta1**step))
        new_m, new_v = m.abs().amax(dim=1).clamp(min=1e-30), v.amax(dim=1).clamp(min=1e-30)
        m_new = torch.round(m * (127 / new_m)[:, None]).to(torch.int8)
        v_new = torch.round(255 * torch.sqrt(v / new_v[:, None])).to(torch.uint8)
        return p, m_new, new_m, v_new, new_v

    def mismatches(
        self, name: str, found: torch.Tensor, inputs: Mapping[str, Value], expected: torch.Tensor
    ) -> torch.Tensor:
        """Codes may differ by one on 1 % of the elements."""
        return wrong_codes(found, expected)

    def flops(self, dims: Dims) -> int:
        """Some twenty operations a parameter, roots and divisions among them."""
        return 20 * self.elements(dims)


PROBLEM = Adam8bitStep()
