"""Focal loss of independent classes."""

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
from kernel_gym.tasks.yardsticks import farthest


class SigmoidFocalLoss(Problem):
    """`loss = a * (1 - p)^gamma * -log(p)`, element by element.

    p is the probability of the right answer: `sigmoid(logits)` where the target is 1, and `1 -
    sigmoid(logits)` where it is 0; a is `alpha` or `1 - alpha` alike. If alpha is negative, a is 1.
    `gamma` is at least 0. Computed in float32.
    """

    name = "sigmoid_focal_loss"
    summary = "focal loss of each logit and binary target, with weights alpha and exponent gamma"
    category = "Loss"
    level = 2
    tags = ("vision", "training", "memory-bound")
    source = "RetinaNet (COCO, 9 anchors, 91 classes), FCOS and DETR variants in torchvision"

    args = (
        TensorArg("logits", torch.float32, shape="rows, classes"),
        TensorArg("target", torch.float32, shape="rows, classes"),
        ScalarArg("alpha", float, values=(0.25, -1.0, 0.75)),
        ScalarArg("gamma", float, values=(2.0, 1.5, 0.0, 3.0)),
    )
    outputs = (Output("loss", torch.float32, shape="rows, classes"),)
    axes = (Axis("rows", 1, 1 << 22), Axis("classes", 1, 4096))
    train = points(
        "rows classes",
        full=[(120000, 91), (270000, 80), (9600, 1000), (32768, 256)],
        sim=[(1000, 91), (1200, 80), (80, 1000), (400, 256)],
    )
    production = points(
        "rows classes",
        full=[(200000, 91), (14400, 1203), (1000000, 1), (60000, 365), (300000, 20)],
        sim=[(900, 91), (60, 1203), (60000, 1), (200, 365), (4000, 20)],
    )
    adversarial = ({"rows": 3, "classes": 1}, {"rows": 5, "classes": 7})
    distributions = ("normal", "heavy_tail", "uniform", "offset")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws logits by the distribution, a tenth of the targets 1, and both scalars."""
        shape = (workload.dims["rows"], workload.dims["classes"])
        return {
            "logits": draw(shape, torch.float32, workload.distribution, generator),
            "target": (torch.rand(shape, generator=generator) < 0.1).float(),
            **self.scalars(workload),
        }

    def oracle(
        self, logits: torch.Tensor, target: torch.Tensor, alpha: float, gamma: float
    ) -> tuple[torch.Tensor, ...]:
        """By the logarithm of the logistic function, in fp64."""
        return (self._by_logistic(logits.double(), target.double(), alpha, gamma),)

    def yardstick(
        self, logits: torch.Tensor, target: torch.Tensor, alpha: float, gamma: float
    ) -> tuple[torch.Tensor, ...]:
        """The reference, and the oracle's formula in float32."""
        oracle = self.oracle(logits, target, alpha, gamma)[0]
        reference = self.reference(logits, target, alpha, gamma)[0]
        return (farthest(oracle, (reference, self._by_logistic(logits, target, alpha, gamma))),)

    def _by_logistic(
        self, logits: torch.Tensor, target: torch.Tensor, alpha: float, gamma: float
    ) -> torch.Tensor:
        right = (2 * target - 1) * logits
        loss = torch.sigmoid(-right) ** gamma * -F.logsigmoid(right)
        weight = alpha * target + (1 - alpha) * (1 - target)
        return loss * weight if alpha >= 0 else loss

    def reference(
        self, logits: torch.Tensor, target: torch.Tensor, alpha: float, gamma: float
    ) -> tuple[torch.Tensor, ...]:
        """As torchvision computes it."""
        p = torch.sigmoid(logits)
        entropy = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
        wrong = 1 - (p * target + (1 - p) * (1 - target))
        loss = entropy * wrong**gamma
        if alpha >= 0:
            loss = (alpha * target + (1 - alpha) * (1 - target)) * loss
        return (loss,)

    def flops(self, dims: Dims) -> int:
        """About ten operations for each element, a function of libm counted as one."""
        return 10 * self.elements(dims)


PROBLEM = SigmoidFocalLoss()
