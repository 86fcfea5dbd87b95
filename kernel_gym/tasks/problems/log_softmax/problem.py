"""Row-wise logarithm of the softmax."""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F

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


class LogSoftmax(Problem):
    """`out[i, :] = x[i, :] - log(sum(exp(x[i, :])))`.

    An error of eight roundings of the largest magnitude in the row, of x or of out, is allowed.
    """

    name = "log_softmax"
    summary = "numerically stable log-softmax over the last axis, in float32"
    category = "Normalization"
    level = 2
    tags = ("audio", "decoder-llm", "memory-bound")
    source = "CTC heads of wav2vec 2.0 and Conformer-L, beam search of Whisper and Llama-2-7B"

    args = (TensorArg("x", torch.float16, shape="rows, cols"),)
    outputs = (Output("out", torch.float32, check=Check.CUSTOM, shape="rows, cols"),)
    axes = (Axis("rows", 1, 1 << 20), Axis("cols", 1, 1 << 18))
    train = points(
        "rows cols",
        full=[(1024, 32000), (512, 51865), (131072, 32), (32768, 1024), (65536, 128)],
        sim=[(8, 32000), (16, 12966), (2048, 32), (128, 1024)],
    )
    production = points(
        "rows cols",
        full=[(128, 128256), (16384, 5000), (49152, 29)],
        sim=[(6, 32064), (48, 5000), (3000, 29)],
    )
    adversarial = ({"rows": 3, "cols": 1},)
    distributions = ("normal", "large", "structured", "constant_rows")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x float16[rows, cols]."""
        shape = (workload.dims["rows"], workload.dims["cols"])
        return {"x": draw(shape, torch.float16, workload.distribution, generator)}

    def oracle(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """By logsumexp."""
        y = x.double()
        return (y - torch.logsumexp(y, dim=1, keepdim=True),)

    def reference(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """One PyTorch call, which converts as it reads; float16 would hide errors of the sum."""
        return (F.log_softmax(x, dim=1, dtype=torch.float32),)

    def mismatches(
        self, name: str, found: torch.Tensor, inputs: Mapping[str, Value], expected: torch.Tensor
    ) -> torch.Tensor:
        """Wrong by more than eight roundings of the row's largest magnitude, at least of 1.

        One rounding of the logarithm moves a whole row, which the common rule takes for a
        systematic error; sums in 16 bits are a hundred times further off. Inputs count as well,
        since `x - (max + log(sum))` rounds at the size of the inputs.
        """
        x = inputs["x"]
        assert isinstance(x, torch.Tensor)
        largest = torch.maximum(expected.abs(), x.abs()).amax(1, keepdim=True).clamp(min=1)
        return ~((found.double() - expected).abs() <= 8 * 2.0**-24 * largest)

    def flops(self, dims: Dims) -> int:
        """Compare, subtract, exponential, add and subtract for each element."""
        return 5 * self.elements(dims)


PROBLEM = LogSoftmax()
