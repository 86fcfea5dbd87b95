"""Repetition, frequency and presence penalties on the logits of a decode step."""

from __future__ import annotations

import torch

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


class LogitPenalties(Problem):
    """Lowers (or raises) the logits of tokens that occurred in `prompt[i]` or `output[i]`.

    The logit of a token in either is divided by `repetition[i]` if it is positive, else multiplied
    by it. Then `frequency[i]` times the token's count in `output[i]` is subtracted, and
    `presence[i]` if that count is not 0. Entries of -1 pad the histories.
    """

    name = "logit_penalties"
    summary = "repetition, frequency and presence penalties from prompt and output histories"
    category = "Fusion"
    level = 3
    tags = ("decoder-llm", "memory-bound", "scatter", "ragged", "sampling")
    source = "sampling in vLLM with the vocabularies of Llama-2, Llama-3, GPT-2 and Qwen2.5"
    domain = (
        "All floating-point inputs are finite. Tokens may repeat; a history may be "
        "empty, which is all -1."
    )

    args = (
        TensorArg("logits", torch.float32, shape="rows, vocab"),
        TensorArg("prompt", torch.int32, shape="rows, prompt_length"),
        TensorArg("output", torch.int32, shape="rows, output_length"),
        TensorArg("repetition", torch.float32, shape="rows"),
        TensorArg("frequency", torch.float32, shape="rows"),
        TensorArg("presence", torch.float32, shape="rows"),
    )
    outputs = (Output("out", torch.float32, shape="rows, vocab"),)
    axes = (
        Axis("rows", 1, 1 << 12),
        Axis("vocab", 1, 1 << 18),
        Axis("prompt_length", 1, 1 << 14),
        Axis("output_length", 1, 1 << 14),
    )
    train = points(
        "rows vocab prompt_length output_length",
        full=[
            (256, 32000, 512, 256),
            (128, 128256, 1024, 512),
            (256, 50257, 256, 768),
            (64, 151936, 2048, 128),
        ],
        sim=[(16, 2000, 32, 16), (4, 8016, 64, 32), (12, 3141, 16, 48), (4, 9496, 96, 8)],
    )
    production = points(
        "rows vocab prompt_length output_length",
        full=[(512, 32064, 128, 128), (32, 256000, 512, 1024), (128, 49152, 1000, 300)],
        sim=[(24, 1002, 32, 32), (2, 16000, 32, 64), (8, 3072, 50, 30)],
    )
    adversarial = ({"rows": 3, "vocab": 1, "prompt_length": 1, "output_length": 2},)
    distributions = ("normal", "uniform", "heavy_tail", "large")

    def elements(self, dims: Dims) -> int:
        """Comparisons of every logit with the histories."""
        return dims["rows"] * dims["vocab"] * (dims["prompt_length"] + dims["output_length"])

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws logits, ragged histories of recurring tokens, and penalties as served.

        The first history is full, and each ends with a token that it does not hold before.
        """
        rows, vocab, prompt, output = (workload.dims[axis.name] for axis in self.axes)

        def history(length: int, last: int) -> torch.Tensor:
            many = max(1, vocab - 2)
            token = (torch.rand(rows, length, generator=generator) ** 2 * many).int()
            filled = torch.randint(0, length + 1, (rows, 1), generator=generator)
            filled[:1] = length
            at = torch.arange(length)
            token = token.masked_fill(at == filled - 1, last)
            return token.where(at < filled, -1).int()

        return {
            "logits": draw((rows, vocab), torch.float32, workload.distribution, generator),
            "prompt": history(prompt, vocab - 1),
            "output": history(output, max(0, vocab - 2)),
            "repetition": 1 + torch.rand(rows, generator=generator),
            "frequency": torch.rand(rows, generator=generator) * 1.5 - 0.5,
            "presence": torch.rand(rows, generator=generator) * 1.5 - 0.5,
        }

    def oracle(
        self,
        logits: torch.Tensor,
        prompt: torch.Tensor,
        output: torch.Tensor,
        repetition: torch.Tensor,
        frequency: torch.Tensor,
        presence: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """Row by row, in fp64."""
        vocab, rows = logits.shape[1], []
        for i in range(logits.shape[0]):
            counts = torch.bincount(output[i][output[i] >= 0], minlength=vocab)
            seen = torch.bincount(prompt[i][prompt[i] >= 0], minlength=vocab) + counts > 0
            x, rate = logits[i].double(), repetition[i].double()
            x = torch.where(seen, torch.where(x > 0, x / rate, x * rate), x)
            rows.append(x - frequency[i].double() * counts - presence[i].double() * (counts > 0))
        return (torch.stack(rows),)

    def reference(
        self,
        logits: torch.Tensor,
        prompt: torch.Tensor,
        output: torch.Tensor,
        repetition: torch.Tensor,
        frequency: torch.Tensor,
        presence: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """As vLLM writes it: counts by scatter with a spare bin for the padding."""
        rows, vocab = logits.shape
        counts = []
        for history in (prompt, output):
            at = torch.where(history < 0, vocab, history).long()
            bins = torch.zeros(rows, vocab + 1, dtype=torch.int32, device=logits.device)
            counts.append(bins.scatter_add_(1, at, torch.ones_like(history))[:, :vocab])
        used = counts[1] > 0
        rate = torch.where((counts[0] > 0) | used, repetition[:, None], 1.0)
        out = torch.where(logits > 0, logits / rate, logits * rate)
        out = out - frequency[:, None] * counts[1]
        return (out - presence[:, None] * used,)

    def flops(self, dims: Dims) -> int:
        """One scaling for each logit."""
        return dims["rows"] * dims["vocab"]


PROBLEM = LogitPenalties()
