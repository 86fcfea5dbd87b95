"""Huber loss of each row."""

from __future__ import annotations

import torch
import torch.nn.functional as F

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


class HuberLoss(Problem):
    """Mean over a row of `h(prediction - target)`.

    `h(d) = d^2 / 2` where `|d| <= delta`, else `delta (|d| - delta / 2)`.
    """

    name = "huber_loss"
    summary = "Huber loss, averaged over each row"
    category = "Loss"
    level = 2
    tags = ("vision", "recommender", "audio", "training", "memory-bound")
    source = (
        "depth maps of MiDaS, mel frames of FastSpeech 2, features distilled from CLIP-L and BERT"
    )

    args = (
        TensorArg("prediction", torch.float16, shape="rows, cols"),
        TensorArg("target", torch.float16, shape="rows, cols"),
        ScalarArg("delta", float, values=(1.0, 0.5, 2.0, 0.1)),
    )
    outputs = (Output("loss", torch.float16, shape="rows"),)
    axes = (Axis("rows", 1, 1 << 20), Axis("cols", 1, 1 << 18))
    train = points(
        "rows cols",
        full=[(128, 147456), (16384, 768), (16384, 1024), (65536, 80), (4096, 4096)],
        sim=[(4, 73728), (256, 768), (128, 1024), (2048, 80)],
    )
    production = points(
        "rows cols",
        full=[(64, 262144), (32768, 512), (32768, 128)],
        sim=[(3, 65536), (400, 512), (1500, 128)],
    )
    adversarial = ({"rows": 3, "cols": 1},)
    distributions = ("normal", "tiny", "heavy_tail", "large")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws prediction and target float16[rows, cols]."""
        shape = (workload.dims["rows"], workload.dims["cols"])
        return {
            "prediction": draw(shape, torch.float16, workload.distribution, generator),
            "target": draw(shape, torch.float16, workload.distribution, generator),
            **self.scalars(workload),
        }

    def oracle(
        self, prediction: torch.Tensor, target: torch.Tensor, delta: float
    ) -> tuple[torch.Tensor, ...]:
        """With the part of the difference below delta, and the rest."""
        size = (prediction.double() - target.double()).abs()
        near = size.clamp(max=delta)
        return ((near.square() / 2 + delta * (size - near)).mean(1),)

    def reference(
        self, prediction: torch.Tensor, target: torch.Tensor, delta: float
    ) -> tuple[torch.Tensor, ...]:
        """PyTorch's loss in float32, averaged by rows, rounded once."""
        loss = F.huber_loss(prediction.float(), target.float(), reduction="none", delta=delta)
        return (loss.mean(dim=1).half(),)

    def flops(self, dims: Dims) -> int:
        """Subtract, compare, two products and two additions for each element."""
        return 6 * self.elements(dims)


PROBLEM = HuberLoss()
