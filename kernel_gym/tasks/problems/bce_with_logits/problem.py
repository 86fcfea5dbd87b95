"""Binary cross entropy of logits, with a weight for the positives of each class."""

from __future__ import annotations

import torch
import torch.nn.functional as F

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


class BceWithLogits(Problem):
    """Row mean of `-pos_weight * y * log(s) - (1 - y) * log(1 - s)`, with `s = sigmoid(x)`."""

    name = "bce_with_logits"
    summary = "binary cross entropy of logits, averaged over the classes of a row"
    category = "Loss"
    level = 2
    tags = ("vision", "audio", "recommender", "training", "memory-bound")
    source = "multi-label heads: AudioSet with AST, Open Images, NUS-WIDE, multi-task click models"

    args = (
        TensorArg("logits", torch.float16, shape="rows, classes"),
        TensorArg("target", torch.float16, shape="rows, classes"),
        TensorArg("pos_weight", torch.float32, shape="classes"),
    )
    outputs = (Output("loss", torch.float16, shape="rows"),)
    axes = (Axis("rows", 1, 1 << 21), Axis("classes", 1, 1 << 17))
    train = points(
        "rows classes",
        full=[(65536, 527), (8192, 9605), (16384, 1000), (262144, 81), (1024, 65536)],
        sim=[(512, 527), (24, 9605), (256, 1000), (2048, 81)],
    )
    production = points(
        "rows classes",
        full=[(32768, 600), (131072, 80), (4096, 21841)],
        sim=[(300, 600), (3000, 80), (10, 21841)],
    )
    adversarial = ({"rows": 3, "classes": 1},)
    distributions = ("normal", "large", "heavy_tail", "uniform")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws logits, targets of which a third lies between 0 and 1, and weights 0.5 to 8."""
        rows, classes = workload.dims["rows"], workload.dims["classes"]
        soft = torch.rand((rows, classes), generator=generator)
        return {
            "logits": draw((rows, classes), torch.float16, workload.distribution, generator),
            "target": (3 * soft - 1).clamp(0, 1).half(),
            "pos_weight": 2 ** (4 * torch.rand(classes, generator=generator) - 1),
        }

    def oracle(
        self, logits: torch.Tensor, target: torch.Tensor, pos_weight: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """By softplus on both sides, which never overflows."""
        x, y = logits.double(), target.double()
        tail = torch.log1p(torch.exp(-x.abs()))
        positive = y * pos_weight.double() * (tail + (-x).clamp(min=0))
        return ((positive + (1 - y) * (tail + x.clamp(min=0))).mean(1),)

    def reference(
        self, logits: torch.Tensor, target: torch.Tensor, pos_weight: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """PyTorch's loss in float32, averaged by rows, rounded once."""
        loss = F.binary_cross_entropy_with_logits(
            logits.float(), target.float(), pos_weight=pos_weight, reduction="none"
        )
        return (loss.mean(dim=1).half(),)

    def flops(self, dims: Dims) -> int:
        """Exponential, logarithm, four products and four additions for each logit."""
        return 10 * self.elements(dims)


PROBLEM = BceWithLogits()
