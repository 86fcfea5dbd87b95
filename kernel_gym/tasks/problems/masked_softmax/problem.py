"""Softmax of attention scores with a pair bias and a key mask."""

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


class MaskedSoftmax(Problem):
    """`softmax(scale x + bias)` over the keys with `keep != 0`; other keys get 0.

    A query of a batch entry without any kept key gets zeros.
    """

    name = "masked_softmax"
    summary = "softmax of scale * x + bias over the keys that are kept"
    category = "Normalization"
    level = 3
    tags = ("protein", "vision", "memory-bound")
    source = "pair-biased row attention of AlphaFold 2, relative positions of T5-large and Swin-T"
    domain = "All floating-point inputs are finite. A batch entry may have no key that is kept."

    args = (
        TensorArg("x", torch.float16, shape="batch, heads, queries, keys"),
        TensorArg("bias", torch.float16, shape="heads, queries, keys"),
        TensorArg("keep", torch.uint8, shape="batch, keys"),
        ScalarArg("scale", float, values=(0.1768, 0.125, 1.0, 0.5)),
    )
    outputs = (Output("out", torch.float16, shape="batch, heads, queries, keys"),)
    axes = (
        Axis("batch", 1, 8192),
        Axis("heads", 1, 128),
        Axis("queries", 1, 1 << 14),
        Axis("keys", 1, 1 << 14),
    )
    train = points(
        "batch heads queries keys",
        full=[
            (64, 8, 256, 256),
            (32, 8, 384, 384),
            (8, 16, 512, 512),
            (1024, 3, 49, 49),
            (2, 16, 1024, 1024),
        ],
        sim=[(4, 4, 128, 128), (2, 4, 96, 384), (3, 1, 128, 512), (24, 3, 49, 49)],
    )
    production = points(
        "batch heads queries keys",
        full=[(128, 8, 256, 256), (16, 12, 512, 512), (512, 6, 49, 49)],
        sim=[(2, 8, 64, 256), (2, 2, 100, 512), (8, 6, 49, 49)],
    )
    adversarial = ({"batch": 3, "heads": 2, "queries": 1, "keys": 3},)
    distributions = ("normal", "large", "structured", "constant_rows")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws scores and a normal bias; a quarter of the keys and the last entry are masked."""
        batch, heads, queries, keys = (workload.dims[axis.name] for axis in self.axes)
        x = draw((batch, heads, queries, keys), torch.float16, workload.distribution, generator)
        bias = torch.randn((heads, queries, keys), generator=generator).half()
        keep = torch.rand((batch, keys), generator=generator) < 0.75
        keep[:, 0] = True
        if batch > 1:
            keep[-1] = False
        return {"x": x, "bias": bias, "keep": keep.to(torch.uint8), **self.scalars(workload)}

    def oracle(
        self, x: torch.Tensor, bias: torch.Tensor, keep: torch.Tensor, scale: float
    ) -> tuple[torch.Tensor, ...]:
        """Exponentials of what is kept, over their sum where that is not zero."""
        logits = x.double() * scale + bias.double()
        kept = (keep != 0)[:, None, None, :]
        top = logits.masked_fill(~kept, float("-inf")).amax(-1, keepdim=True)
        e = torch.exp(logits - top.clamp(min=-1e9)).where(kept, torch.zeros_like(logits))
        total = e.sum(-1, keepdim=True)
        return (e / total.where(total > 0, torch.ones_like(total)),)

    def reference(
        self, x: torch.Tensor, bias: torch.Tensor, keep: torch.Tensor, scale: float
    ) -> tuple[torch.Tensor, ...]:
        """As attention modules write it: fill, softmax, fill again, in float32."""
        masked = (keep == 0)[:, None, None, :]
        logits = (x.float() * scale + bias.float()).masked_fill(masked, float("-inf"))
        return (torch.softmax(logits, dim=-1).masked_fill(masked, 0.0).half(),)

    def flops(self, dims: Dims) -> int:
        """Scale, add, compare, subtract, exponential, add and divide for each score."""
        return 7 * self.elements(dims)


PROBLEM = MaskedSoftmax()
