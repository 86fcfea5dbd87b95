"""Cross entropy with label smoothing."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from kernel_gym.tasks.distributions import draw, draw_mask
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


class SmoothedCrossEntropy(Problem):
    """`lse(x) - (1 - smoothing) x[target] - smoothing mean(x)` of a row of logits.

    lse is the log of the sum of exponentials. A row whose target is `ignore_index` has loss 0.
    """

    name = "smoothed_cross_entropy"
    summary = "cross entropy with label smoothing and ignored targets"
    category = "Loss"
    level = 3
    tags = ("audio", "vision", "decoder-llm", "training", "memory-bound")
    source = "Transformer-base on WMT14, Whisper-large, ViT and ResNet-50 on ImageNet, NLLB-200"
    domain = (
        "All floating-point inputs are finite. A target is a class or ignore_index, "
        "which may be a class, too."
    )

    args = (
        TensorArg("logits", torch.bfloat16, shape="rows, classes"),
        TensorArg("target", torch.int64, shape="rows"),
        ScalarArg("smoothing", float, values=(0.1, 0.2, 0.0, 0.05)),
        ScalarArg("ignore_index", int, values=(-100, 0, 255)),
    )
    outputs = (Output("loss", torch.bfloat16, shape="rows"),)
    axes = (Axis("rows", 1, 1 << 20), Axis("classes", 2, 1 << 18))
    train = points(
        "rows classes",
        full=[(4096, 37000), (2048, 51865), (32768, 1000), (512, 256206), (4096, 21841)],
        sim=[(32, 9250), (24, 12966), (256, 1000), (8, 32026)],
    )
    production = points(
        "rows classes",
        full=[(8192, 32128), (2048, 65001), (65536, 345)],
        sim=[(30, 8032), (6, 37000), (600, 345)],
    )
    adversarial = ({"rows": 3, "classes": 2},)
    distributions = ("normal", "offset", "heavy_tail", "structured")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws logits and targets, a fifth of which is ignored.

        The first row has the last class that is not ignored: other rows may have the first one.
        """
        rows, classes = workload.dims["rows"], workload.dims["classes"]
        logits = draw((rows, classes), torch.bfloat16, workload.distribution, generator)
        target = torch.randint(0, classes, (rows,), generator=generator)
        ignored = draw_mask((rows,), 0.2, generator)
        scalars = self.scalars(workload)
        nowhere = int(scalars["ignore_index"])
        target[:1] = classes - 1 - (nowhere == classes - 1)
        return {
            "logits": logits,
            "target": target.masked_fill(ignored, nowhere),
            **scalars,
        }

    def oracle(
        self, logits: torch.Tensor, target: torch.Tensor, smoothing: float, ignore_index: int
    ) -> tuple[torch.Tensor, ...]:
        """By logsumexp."""
        x = logits.double()
        kept = target != ignore_index
        at = target.where(kept, torch.zeros_like(target))
        picked = x.gather(1, at[:, None]).squeeze(1)
        loss = torch.logsumexp(x, dim=1) - (1 - smoothing) * picked - smoothing * x.mean(1)
        return (loss.where(kept, torch.zeros_like(loss)),)

    def reference(
        self, logits: torch.Tensor, target: torch.Tensor, smoothing: float, ignore_index: int
    ) -> tuple[torch.Tensor, ...]:
        """One PyTorch call in float32, rounded once."""
        loss = F.cross_entropy(
            logits.float(),
            target,
            ignore_index=ignore_index,
            reduction="none",
            label_smoothing=smoothing,
        )
        return (loss.to(torch.bfloat16),)

    def flops(self, dims: Dims) -> int:
        """Compare, subtract, exponential and two additions for each logit."""
        return 5 * self.elements(dims)


PROBLEM = SmoothedCrossEntropy()
