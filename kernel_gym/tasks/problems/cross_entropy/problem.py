"""Token-wise cross entropy over a vocabulary."""

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


class CrossEntropy(Problem):
    """`loss[i] = logsumexp(logits[i, :]) - logits[i, target[i]]`, 0 where the target is ignored."""

    name = "cross_entropy"
    summary = "cross entropy of each row; a row whose target is ignore_index has loss 0"
    category = "Loss"
    level = 2
    tags = ("decoder-llm", "training", "memory-bound")
    source = "vocabularies of GPT-2, Llama-2, Llama-3, BERT and Qwen2.5"
    domain = (
        "All floating-point inputs are finite. A target is a class or ignore_index, "
        "which may be a class, too."
    )

    args = (
        TensorArg("logits", torch.bfloat16, shape="rows, vocab"),
        TensorArg("target", torch.int64, shape="rows"),
        ScalarArg("ignore_index", int, values=(-100, 0, 255, -1)),
    )
    outputs = (Output("loss", torch.float32, shape="rows"),)
    axes = (Axis("rows", 1, 1 << 20), Axis("vocab", 2, 1 << 18))
    train = points(
        "rows vocab",
        full=[(8192, 32000), (4096, 50257), (2048, 128256), (4096, 30522), (16384, 1024)],
        sim=[(64, 4000), (32, 6283), (16, 16032), (256, 1024)],
    )
    production = points(
        "rows vocab",
        full=[(2048, 151936), (8192, 50304), (1024, 256000)],
        sim=[(12, 18992), (48, 6288), (8, 32000)],
    )
    adversarial = ({"rows": 7, "vocab": 3},)
    distributions = ("normal", "large", "heavy_tail", "constant_rows")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws logits bfloat16[rows, vocab], target int64[rows] with a fifth of it ignored."""
        rows, vocab = workload.dims["rows"], workload.dims["vocab"]
        logits = draw((rows, vocab), torch.bfloat16, workload.distribution, generator)
        target = torch.randint(0, vocab, (rows,), generator=generator)
        ignored = draw_mask((rows,), 0.2, generator)
        scalars = self.scalars(workload)
        return {
            "logits": logits,
            "target": target.masked_fill(ignored, int(scalars["ignore_index"])),
            **scalars,
        }

    def oracle(
        self, logits: torch.Tensor, target: torch.Tensor, ignore_index: int
    ) -> tuple[torch.Tensor, ...]:
        """By logsumexp."""
        x = logits.double()
        kept = target != ignore_index
        at = target.where(kept, torch.zeros_like(target))
        loss = torch.logsumexp(x, dim=1) - x.gather(1, at[:, None]).squeeze(1)
        return (loss.where(kept, torch.zeros_like(loss)),)

    def reference(
        self, logits: torch.Tensor, target: torch.Tensor, ignore_index: int
    ) -> tuple[torch.Tensor, ...]:
        """One PyTorch call in float32."""
        x = logits.float()
        return (F.cross_entropy(x, target, ignore_index=ignore_index, reduction="none"),)

    def flops(self, dims: Dims) -> int:
        """Compare, subtract, exponential and add for each logit."""
        return 4 * self.elements(dims)


PROBLEM = CrossEntropy()
