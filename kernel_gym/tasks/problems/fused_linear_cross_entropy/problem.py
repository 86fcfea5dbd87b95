"""Cross entropy of a linear head, without keeping the logits."""

from __future__ import annotations

from collections.abc import Iterator

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
from kernel_gym.tasks.yardsticks import farthest, products_by_matrix_units, sum_orders


class FusedLinearCrossEntropy(Problem):
    """`loss[i] = lse[i] - logit[i, target[i]]`, `logit = x weight^T`, 0 if the target is ignored.

    `lse[i]` is the logarithm of the sum of `exp(logit[i, :])`; it is returned for every row. A row
    is ignored if its target equals `ignore_index`; other targets are from 0 to vocab - 1. Logits
    are accumulated and used in float32. They may exceed 88.
    """

    name = "fused_linear_cross_entropy"
    summary = "product with the vocabulary and cross entropy by row, fused; log-sum-exp as well"
    category = "Loss"
    level = 5
    tags = ("decoder-llm", "training", "compute-bound")
    source = "heads of Llama-3.2-1B (2048 x 128256), GPT-2 (768 x 50257) and Qwen2.5-0.5B (Liger)"

    args = (
        TensorArg("x", torch.bfloat16, shape="rows, hidden"),
        TensorArg("weight", torch.bfloat16, shape="vocab, hidden"),
        TensorArg("target", torch.int64, shape="rows"),
        ScalarArg("ignore_index", int, values=(-100, 0, -1, 1)),
    )
    outputs = (
        Output("loss", torch.float32, shape="rows"),
        Output("lse", torch.float32, shape="rows"),
    )
    axes = (
        Axis("rows", 1, 1 << 17),
        Axis("hidden", 16, 8192, multiple=16),
        Axis("vocab", 2, 1 << 18),
    )
    train = points(
        "rows hidden vocab",
        full=[(2048, 2048, 128256), (4096, 768, 50257), (2048, 896, 151936), (1024, 4096, 32000)],
        sim=[(64, 128, 4000), (96, 96, 3001), (48, 112, 4752), (32, 512, 1000)],
    )
    production = points(
        "rows hidden vocab",
        full=[(4096, 1024, 30522), (1024, 3584, 152064), (8192, 512, 32000), (2048, 1600, 50257)],
        sim=[(64, 64, 3815), (32, 224, 4752), (128, 64, 2000), (48, 96, 3141)],
    )
    adversarial = ({"rows": 3, "hidden": 16, "vocab": 2}, {"rows": 17, "hidden": 48, "vocab": 131})
    distributions = ("normal", "uniform", "large", "structured")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x by the distribution, logits of up to hundreds for "large", and targets."""
        rows, hidden, vocab = (workload.dims[axis.name] for axis in self.axes)
        x = draw((rows, hidden), torch.float32, workload.distribution, generator)
        x = x / 25 if workload.distribution == "large" else 2 * x
        chosen = self.scalars(workload)
        target = torch.randint(vocab, (rows,), generator=generator)
        skip = draw_mask((rows,), 0.2, generator)
        weight = torch.randn((vocab, hidden), generator=generator) * hidden**-0.5
        return {
            "x": x.bfloat16(),
            "weight": weight.bfloat16(),
            "target": torch.where(skip, chosen["ignore_index"], target),
            **chosen,
        }

    def oracle(
        self, x: torch.Tensor, weight: torch.Tensor, target: torch.Tensor, ignore_index: int
    ) -> tuple[torch.Tensor, ...]:
        """Some rows at a time, in fp64."""
        loss, lse, wide = [], [], weight.double().mT
        for rows, goal in zip(x.split(256), target.split(256), strict=True):
            logits = rows.double() @ wide
            kept = goal != ignore_index
            mine = logits.gather(1, torch.where(kept, goal, 0)[:, None])[:, 0]
            lse.append(torch.logsumexp(logits, dim=1))
            loss.append(torch.where(kept, lse[-1] - mine, 0.0))
        return torch.cat(loss), torch.cat(lse)

    def reference(
        self, x: torch.Tensor, weight: torch.Tensor, target: torch.Tensor, ignore_index: int
    ) -> tuple[torch.Tensor, ...]:
        """The product in float32 and two PyTorch calls."""
        logits = F.linear(x.float(), weight.float())
        loss = F.cross_entropy(logits, target, ignore_index=ignore_index, reduction="none")
        return loss, torch.logsumexp(logits, dim=1)

    def yardstick(
        self, x: torch.Tensor, weight: torch.Tensor, target: torch.Tensor, ignore_index: int
    ) -> tuple[torch.Tensor, ...]:
        """The definition as well, whose difference cancels, with products term by term."""
        answers = [self.reference(x, weight, target, ignore_index)]
        kept = target != ignore_index
        for logits in self._honest_logits(x, weight):
            lse = torch.logsumexp(logits, dim=1)
            mine = logits.gather(1, torch.where(kept, target, 0)[:, None])[:, 0]
            answers.append((torch.where(kept, lse - mine, 0.0), lse))
        oracle = self.oracle(x, weight, target, ignore_index)
        return tuple(map(farthest, oracle, zip(*answers, strict=True)))

    def _honest_logits(self, x: torch.Tensor, weight: torch.Tensor) -> Iterator[torch.Tensor]:
        """Yields float32 products term by term, and those of the GPU's matrix units."""
        wide, other = x.float(), weight.float()
        for order in sum_orders(len(x), x.shape[1], x.device):
            logits = wide.new_zeros((len(x), len(weight)))
            for i in order.split(1):
                logits = torch.addmm(logits, wide[:, i], other[:, i].T)
            yield logits
        yield from products_by_matrix_units(x, weight.T)

    def flops(self, dims: Dims) -> int:
        """The product, and two operations for each logit."""
        return 2 * self.elements(dims) + 2 * dims["rows"] * dims["vocab"]


PROBLEM = FusedLinearCrossEntropy()
