"""Token-wise cross entropy over a vocabulary."""

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

IGNORE = -100


class CrossEntropy(Problem):
    """`loss[i] = logsumexp(logits[i, :]) - logits[i, target[i]]`, 0 where the target is ignored."""

    name = "cross_entropy"
    summary = "cross entropy of each row; a row whose target is ignore_index has loss 0"
    category = "Loss"
    level = 2
    tags = ("decoder-llm", "training", "memory-bound")
    source = "vocabularies of GPT-2, Llama-2, Llama-3, BERT and Qwen2.5"

    args = (
        TensorArg("logits", torch.bfloat16, shape="rows, vocab"),
        TensorArg("target", torch.int64, shape="rows"),
        ScalarArg("ignore_index", int),
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
    adversarial = ({"rows": 3, "vocab": 2},)
    distributions = ("normal", "large", "heavy_tail", "constant_rows")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws logits bfloat16[rows, vocab], target int64[rows] with a fifth of it ignored."""
        rows, vocab = workload.dims["rows"], workload.dims["vocab"]
        logits = draw((rows, vocab), torch.bfloat16, workload.distribution, generator)
        target = torch.randint(0, vocab, (rows,), generator=generator)
        ignored = torch.rand(rows, generator=generator) < 0.2
        return {
            "logits": logits,
            "target": target.masked_fill(ignored, IGNORE),
            "ignore_index": IGNORE,
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
        """Operator by operator in float32, as Megatron's vocabulary-parallel loss spells it."""
        x = logits.float()
        top = torch.amax(x, dim=1)
        shifted = x - top[:, None]
        log_sum = torch.log(torch.exp(shifted).sum(dim=1))
        ignored = target == ignore_index
        at = target.masked_fill(ignored, 0)
        picked = torch.gather(shifted, 1, at[:, None])[:, 0]
        return ((log_sum - picked).masked_fill(ignored, 0.0),)

    def flops(self, dims: Dims) -> int:
        """Compare, subtract, exponential and add for each logit."""
        return 4 * self.elements(dims)


PROBLEM = CrossEntropy()
