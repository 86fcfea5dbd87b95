"""Largest value of each row and where it is."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from kernel_gym.tasks.distributions import draw
from kernel_gym.tasks.problem import (
    Axis,
    Check,
    Dims,
    Output,
    Problem,
    TensorArg,
    Value,
    points,
)
from kernel_gym.tasks.workload import Workload


class RowArgmax(Problem):
    """`values[i] = max(x[i, :])` and an index at which it stands; ties may go either way."""

    name = "row_argmax"
    summary = "maximum of each row and an index of it (any, where several are equal)"
    category = "Index"
    level = 2
    tags = ("decoder-llm", "moe", "memory-bound", "reduction")
    source = "greedy sampling from Llama-2, GPT-2 and Llama-3 logits, top-1 routing of Switch"
    domain = (
        "All floating-point inputs are finite. Several elements may be the largest: then "
        "any of their places is right."
    )

    args = (TensorArg("x", torch.float32, shape="rows, cols"),)
    outputs = (
        Output("values", torch.float32, check=Check.EXACT, shape="rows"),
        Output("indices", torch.int64, check=Check.CUSTOM, shape="rows"),
    )
    axes = (Axis("rows", 1, 1 << 20), Axis("cols", 1, 1 << 18))
    train = points(
        "rows cols",
        full=[(256, 32000), (512, 50257), (64, 128256), (32768, 128), (8192, 2048)],
        sim=[(32, 8000), (16, 12564), (8, 32064), (256, 1024)],
    )
    production = points(
        "rows cols",
        full=[(256, 151936), (16384, 256), (128, 256000)],
        sim=[(8, 37984), (512, 256), (32, 6283), (24, 9496), (128, 2048)],
    )
    adversarial = ({"rows": 5, "cols": 1},)
    distributions = ("normal", "range_ends", "structured", "constant_rows")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x float32[rows, cols]."""
        shape = (workload.dims["rows"], workload.dims["cols"])
        return {"x": draw(shape, torch.float32, workload.distribution, generator)}

    def oracle(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Maximum in fp64, indices int64."""
        values, indices = x.double().max(dim=1)
        return values, indices

    def reference(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        values, indices = torch.max(x, dim=1)
        return values, indices

    def mismatches(
        self, name: str, found: torch.Tensor, inputs: Mapping[str, Value], expected: torch.Tensor
    ) -> torch.Tensor:
        """An index is wrong where it is out of range or does not gather the row's maximum."""
        x = inputs["x"]
        if name != "indices" or not isinstance(x, torch.Tensor):
            return super().mismatches(name, found, inputs, expected)
        outside = (found < 0) | (found >= x.shape[1])
        gathered = x.gather(1, found.clamp(0, x.shape[1] - 1)[:, None]).squeeze(1)
        return outside | (gathered != x.amax(dim=1))

    def flops(self, dims: Dims) -> int:
        """One comparison for each element."""
        return self.elements(dims)


PROBLEM = RowArgmax()
