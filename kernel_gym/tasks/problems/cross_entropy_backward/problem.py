"""Gradient of the cross entropy with label smoothing."""

from __future__ import annotations

import torch

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


class CrossEntropyBackward(Problem):
    """`dlogits[i] = grad[i] * (softmax(logits[i]) - goal[i])`, zero if `target[i]` is ignored.

    `goal[i] = (1 - smoothing) * onehot(target[i]) + smoothing / vocab`. A row is ignored if
    `target[i] == ignore_index`, which may be a legal index or a negative number. All other targets
    are from 0 to vocab - 1.
    """

    name = "cross_entropy_backward"
    summary = "gradient of the cross entropy by row, with label smoothing and ignored targets"
    category = "Loss"
    level = 3
    tags = ("decoder-llm", "training", "memory-bound", "backward")
    source = "heads of Llama-2-7B, Llama-3-8B, GPT-2, Qwen2.5-7B and BERT-large in training"

    args = (
        TensorArg("logits", torch.float16, shape="rows, vocab"),
        TensorArg("target", torch.int64, shape="rows"),
        TensorArg("grad", torch.float32, shape="rows"),
        ScalarArg("smoothing", float, values=(0.1, 0.0, 0.25)),
        ScalarArg("ignore_index", int, values=(-100, 0, 1, -1)),
    )
    outputs = (Output("dlogits", torch.float16, shape="rows, vocab"),)
    axes = (Axis("rows", 1, 1 << 18), Axis("vocab", 2, 1 << 18))
    train = points(
        "rows vocab",
        full=[(4096, 32000), (2048, 128256), (8192, 50257), (2048, 152064)],
        sim=[(8, 32000), (64, 4096), (5, 50257), (128, 1000)],
    )
    production = points(
        "rows vocab",
        full=[(8192, 30522), (1024, 256000), (4096, 65024), (16384, 10000), (4096, 100352)],
        sim=[(8, 30522), (64, 2048), (4, 65024), (200, 1000), (16, 10000)],
    )
    adversarial = ({"rows": 3, "vocab": 2}, {"rows": 5, "vocab": 7})
    distributions = ("normal", "large", "structured", "constant_rows")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws logits by the distribution, targets of which a fifth is ignored, and scalars."""
        rows, vocab = workload.dims["rows"], workload.dims["vocab"]
        scalars = self.scalars(workload)
        target = torch.randint(vocab, (rows,), generator=generator)
        skip = draw_mask((rows,), 0.2, generator)
        return {
            "logits": draw((rows, vocab), torch.float16, workload.distribution, generator),
            "target": torch.where(skip, scalars["ignore_index"], target),
            "grad": 0.5 + torch.rand(rows, generator=generator),
            **scalars,
        }

    def oracle(
        self,
        logits: torch.Tensor,
        target: torch.Tensor,
        grad: torch.Tensor,
        smoothing: float,
        ignore_index: int,
    ) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        rows, vocab = logits.shape
        out = torch.softmax(logits.double(), dim=1) - smoothing / vocab
        kept = target != ignore_index
        at = torch.where(kept, target, 0)
        out[torch.arange(rows, device=target.device), at] -= 1 - smoothing
        return (out * (grad.double() * kept)[:, None],)

    def reference(
        self,
        logits: torch.Tensor,
        target: torch.Tensor,
        grad: torch.Tensor,
        smoothing: float,
        ignore_index: int,
    ) -> tuple[torch.Tensor, ...]:
        """A softmax in float32, then the goal subtracted in place, rounded once."""
        out = torch.softmax(logits, dim=1, dtype=torch.float32)
        kept = target != ignore_index
        at = torch.where(kept, target, 0)[:, None]
        less = torch.full_like(grad, smoothing - 1)[:, None]
        out.sub_(smoothing / logits.shape[1]).scatter_add_(1, at, less)
        return (out.mul_((grad * kept)[:, None]).half(),)

    def flops(self, dims: Dims) -> int:
        """Maximum, exponential, sum, quotient, difference and product for each logit."""
        return 6 * self.elements(dims)


PROBLEM = CrossEntropyBackward()
