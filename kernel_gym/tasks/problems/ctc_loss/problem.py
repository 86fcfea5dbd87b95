"""Connectionist temporal classification: a dynamic program over alignments."""

from __future__ import annotations

import math

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
from kernel_gym.tasks.yardsticks import farthest


class CtcLoss(Problem):
    """`-log(p)`, where p is the summed probability of all paths that spell the target.

    A path chooses one class for each of the first `frame_count` frames, with the probabilities of a
    softmax of the logits. It spells the target if its first `label_count` labels remain after
    repeats are merged and blanks (class 0) are removed.
    """

    name = "ctc_loss"
    summary = "CTC loss of each batch entry; class 0 is the blank"
    category = "Loss"
    level = 5
    tags = ("audio", "training", "dynamic-program")
    source = (
        "fine-tuning of wav2vec 2.0 on LibriSpeech, Deep Speech 2, Conformer-L, CRNN text lines"
    )
    domain = (
        "All floating-point inputs are finite. Each target has a label and a path; its "
        "label may repeat."
    )

    args = (
        TensorArg("logits", torch.float32, shape="frames, batch, classes"),
        TensorArg("target", torch.int64, shape="batch, labels"),
        TensorArg("frame_count", torch.int64, shape="batch"),
        TensorArg("label_count", torch.int64, shape="batch"),
    )
    outputs = (Output("loss", torch.float32, shape="batch"),)
    axes = (
        Axis("frames", 1, 8192),
        Axis("batch", 1, 4096),
        Axis("classes", 2, 8192),
        Axis("labels", 1, 500),
    )
    train = points(
        "frames batch classes labels",
        full=[
            (749, 64, 32, 200),
            (400, 256, 29, 150),
            (250, 128, 1025, 80),
            (32, 1024, 5000, 15),
            (1499, 32, 32, 300),
        ],
        sim=[(48, 8, 32, 20), (64, 6, 29, 12), (24, 4, 257, 10), (16, 32, 37, 6)],
    )
    production = points(
        "frames batch classes labels",
        full=[(999, 64, 32, 250), (500, 64, 129, 120), (26, 2048, 37, 12)],
        sim=[(60, 8, 32, 24), (32, 8, 129, 8), (13, 48, 37, 5)],
    )
    adversarial = ({"frames": 1, "batch": 2, "classes": 3, "labels": 2},)
    distributions = ("normal", "uniform", "heavy_tail", "structured")

    def elements(self, dims: Dims) -> int:
        """States of the program, and the probabilities read."""
        return dims["frames"] * dims["batch"] * (2 * dims["labels"] + 1 + dims["classes"])

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws logits; counts lie in the upper halves, such that a path always exists.

        In the first frame blank and first label are the least likely classes. Otherwise a loss of
        few frames may be so close to zero that it consists of rounding errors.
        """
        frames, batch, classes, labels = (workload.dims[axis.name] for axis in self.axes)
        logits = draw((frames, batch, classes), torch.float32, workload.distribution, generator)
        share = torch.rand((2, batch), generator=generator, dtype=torch.float64) * 0.5 + 0.5
        frame_count = (frames * share[0]).ceil().long()
        most = torch.minimum(torch.full_like(frame_count, labels), frame_count // 2)
        target = torch.randint(1, classes, (batch, labels), generator=generator)
        least = logits[0].amin(1, keepdim=True).expand(-1, 2)
        logits[0].scatter_(1, F.pad(target[:, :1], (1, 0)), least)
        return {
            "logits": 2 * logits.clamp(-20, 20),
            "target": target,
            "frame_count": frame_count,
            "label_count": (most * share[1]).ceil().long(),
        }

    def oracle(
        self,
        logits: torch.Tensor,
        target: torch.Tensor,
        frame_count: torch.Tensor,
        label_count: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """Forward variables of all batch entries at once, frame by frame."""
        probs = torch.log_softmax(logits.double(), dim=2)
        frames, batch, _ = probs.shape
        states = 2 * target.shape[1] + 1
        label = torch.zeros((batch, states), dtype=torch.int64, device=probs.device)
        label[:, 1::2] = target
        skip = torch.zeros_like(label, dtype=torch.bool)
        skip[:, 2:] = (label[:, 2:] != 0) & (label[:, 2:] != label[:, :-2])
        never = torch.full((batch, 2), float("-inf"), dtype=torch.float64, device=probs.device)
        alpha = torch.full((batch, states), float("-inf"), dtype=torch.float64, device=probs.device)
        alpha[:, :2] = probs[0].gather(1, label[:, :2])
        for t in range(1, frames):
            padded = torch.cat([never, alpha], dim=1)
            far = padded[:, :-2].masked_fill(~skip, float("-inf"))
            arrived = torch.stack([alpha, padded[:, 1:-1], far]).logsumexp(0)
            step = arrived + probs[t].gather(1, label)
            alpha = torch.where((t < frame_count)[:, None], step, alpha)
        last = (2 * label_count)[:, None]
        ends = torch.cat([last, (last - 1).clamp(min=0)], dim=1)
        final = alpha.gather(1, ends)
        final[:, 1] = final[:, 1].masked_fill(label_count == 0, float("-inf"))
        return (-final.logsumexp(1),)

    def reference(
        self,
        logits: torch.Tensor,
        target: torch.Tensor,
        frame_count: torch.Tensor,
        label_count: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """Two PyTorch calls."""
        log_probs = F.log_softmax(logits, dim=2)
        return (F.ctc_loss(log_probs, target, frame_count, label_count, reduction="none"),)

    def yardstick(
        self,
        logits: torch.Tensor,
        target: torch.Tensor,
        frame_count: torch.Tensor,
        label_count: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """Probabilities as a logit less a sum's logarithm as well, which cancel if one is near 1.

        With base e and with base 2.
        """
        counts = target, frame_count, label_count
        binary = logits * math.log2(math.e)
        binary = (binary - torch.log2(torch.exp2(binary).sum(2, keepdim=True))) * math.log(2)
        natural = logits - torch.logsumexp(logits, dim=2, keepdim=True)
        answers = [F.ctc_loss(p, *counts, reduction="none") for p in (natural, binary)]
        answers += self.reference(logits, *counts)
        return (farthest(self.oracle(logits, *counts)[0], answers),)

    def bytes(self, dims: Dims) -> int:
        """Read the logits (4 bytes each) of half of the frames and counts (16), write losses (4).

        The counts may spare an implementation the other half, and all but one label of an entry.
        """
        frames = (dims["frames"] + 1) // 2
        return 4 * frames * dims["batch"] * dims["classes"] + 20 * dims["batch"]

    def flops(self, dims: Dims) -> int:
        """An exponential and an addition for each logit of half of the frames."""
        return 2 * ((dims["frames"] + 1) // 2) * dims["batch"] * dims["classes"]


@torch.library.register_fake("aten::_ctc_loss.Tensor")
def _ctc_loss_shapes(
    log_probs, targets, input_lengths, target_lengths, blank=0, zero_infinity=False
):
    """Shapes for the time model, which PyTorch does not register: losses and forward variables."""
    frames, batch, _ = log_probs.shape
    states = 2 * targets.shape[-1] + 1
    return log_probs.new_empty(batch), log_probs.new_empty(batch, frames, states)


PROBLEM = CtcLoss()
