"""Distillation loss: Kullback-Leibler divergence of a student from a teacher."""

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


class KlDiv(Problem):
    """`sum(p (log p - log q))` over a row, with p and q the softmax of `logits / temperature`.

    p is the teacher's, q the student's.
    """

    name = "kl_div"
    summary = "KL divergence of the student from the teacher for each row"
    category = "Loss"
    level = 3
    tags = ("decoder-llm", "vision", "training", "memory-bound")
    source = "logit distillation of Llama-2, GPT-2 and Gemma students, DINO heads, ImageNet classes"

    args = (
        TensorArg("student", torch.bfloat16, shape="rows, classes"),
        TensorArg("teacher", torch.bfloat16, shape="rows, classes"),
        ScalarArg("temperature", float, values=(2.0, 1.0, 4.0, 3.0)),
    )
    outputs = (Output("loss", torch.bfloat16, shape="rows"),)
    axes = (Axis("rows", 1, 1 << 20), Axis("classes", 2, 1 << 18))
    train = points(
        "rows classes",
        full=[(4096, 32000), (2048, 50257), (512, 256000), (1024, 65536), (32768, 1000)],
        sim=[(32, 8000), (16, 12564), (6, 32064), (256, 1000)],
    )
    production = points(
        "rows classes",
        full=[(1024, 128256), (2048, 30522), (8192, 8192)],
        sim=[(8, 30522), (32, 7631), (40, 4096)],
    )
    adversarial = ({"rows": 3, "classes": 2},)
    distributions = ("normal", "heavy_tail", "uniform", "structured")
    tiny_inputs = False

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws both models' logits bfloat16[rows, classes]."""
        shape = (workload.dims["rows"], workload.dims["classes"])
        return {
            "student": draw(shape, torch.bfloat16, workload.distribution, generator),
            "teacher": draw(shape, torch.bfloat16, workload.distribution, generator),
            **self.scalars(workload),
        }

    def oracle(
        self, student: torch.Tensor, teacher: torch.Tensor, temperature: float
    ) -> tuple[torch.Tensor, ...]:
        """From both log-softmaxes, in fp64."""
        log_q = torch.log_softmax(student.double() / temperature, dim=1)
        log_p = torch.log_softmax(teacher.double() / temperature, dim=1)
        return ((log_p.exp() * (log_p - log_q)).sum(1),)

    def reference(
        self, student: torch.Tensor, teacher: torch.Tensor, temperature: float
    ) -> tuple[torch.Tensor, ...]:
        """As distillation scripts write it, in float32, rounded once."""
        log_q = F.log_softmax(student.float() / temperature, dim=1)
        log_p = F.log_softmax(teacher.float() / temperature, dim=1)
        return (F.kl_div(log_q, log_p, reduction="none", log_target=True).sum(1).bfloat16(),)

    def flops(self, dims: Dims) -> int:
        """For each model compare, subtract, exponential and add; then four for the sum."""
        return 12 * self.elements(dims)


PROBLEM = KlDiv()
