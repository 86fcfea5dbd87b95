"""Rotary embedding with positions in time, height and width."""

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


class Mrope(Problem):
    """Pair i of a head, `(x[i], x[i + half])`, is turned by the angle of its section.

    With `half = head_dim / 2`, pairs below `temporal` take the cosine and sine of axis 0, those
    below `temporal + spatial` of axis 1, all others of axis 2: `out[i] = x[i] cos - x[i + half]
    sin`, `out[i + half] = x[i + half] cos + x[i] sin`, with cos and sin at `[axis, t, i]`.
    """

    name = "mrope"
    summary = "rotary embedding of heads whose pairs take angles of time, height or width"
    category = "Fusion"
    level = 2
    tags = ("decoder-llm", "vision", "memory-bound")
    source = "Qwen2-VL-2B and 7B, Qwen2.5-VL-72B (sections 16, 24, 24 of 64 pairs), GLM-4.1V"
    domain = "All inputs are finite. A section may have no pairs, or all."

    args = (
        TensorArg("x", torch.float16, shape="tokens, heads, head_dim"),
        TensorArg("cos", torch.float32, shape="3, tokens, head_dim / 2"),
        TensorArg("sin", torch.float32, shape="3, tokens, head_dim / 2"),
        ScalarArg("temporal", int, values=(16, 8, 0, 21)),
        ScalarArg("spatial", int, values=(24, 12, 5)),
    )
    outputs = (Output("out", torch.float16, shape="tokens, heads, head_dim"),)
    axes = (Axis("tokens", 1, 1 << 18), Axis("heads", 1, 128), Axis("head_dim", 2, 256, multiple=2))
    train = points(
        "tokens heads head_dim",
        full=[(8192, 28, 128), (16384, 12, 128), (4096, 64, 128), (32768, 16, 80)],
        sim=[(64, 28, 128), (200, 12, 96), (24, 64, 128), (150, 16, 80)],
    )
    production = points(
        "tokens heads head_dim",
        full=[(2048, 32, 64), (65536, 8, 128), (1, 28, 128), (10000, 24, 96)],
        sim=[(100, 32, 64), (300, 8, 128), (10, 28, 128), (60, 24, 96)],
    )
    adversarial = (
        {"tokens": 3, "heads": 2, "head_dim": 2},
        {"tokens": 5, "heads": 3, "head_dim": 70},
    )
    distributions = ("normal", "offset", "uniform", "structured")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x by the distribution, and angles of random positions on three axes."""
        tokens, heads, width = (workload.dims[axis.name] for axis in self.axes)
        place = torch.randint(4096, (3, tokens, 1), generator=generator).double()
        rate = 1e6 ** (-torch.arange(0, width, 2).double() / width)
        angle = place * rate
        return {
            "x": draw((tokens, heads, width), torch.float16, workload.distribution, generator),
            "cos": angle.cos().float(),
            "sin": angle.sin().float(),
            **self.scalars(workload),
        }

    def oracle(
        self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, temporal: int, spatial: int
    ) -> tuple[torch.Tensor, ...]:
        """With one table put together from the three, in fp64."""
        half = x.shape[2] // 2
        pair = torch.arange(half, device=x.device)
        axis = (pair >= temporal).long() + (pair >= temporal + spatial).long()
        c, s = (table.double()[axis, :, pair].mT[:, None] for table in (cos, sin))
        low, high = x[..., :half].double(), x[..., half:].double()
        return (torch.cat((low * c - high * s, high * c + low * s), dim=2),)

    def reference(
        self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, temporal: int, spatial: int
    ) -> tuple[torch.Tensor, ...]:
        """The sections cut and joined, then the turn in float32."""
        half = x.shape[2] // 2
        first = min(temporal, half)
        second = min(temporal + spatial, half)
        parts = [first, second - first, half - second]
        c, s = (
            torch.cat([part[i] for i, part in enumerate(table.split(parts, dim=2))], dim=1)[:, None]
            for table in (cos, sin)
        )
        low, high = x.float().chunk(2, dim=2)
        return (torch.cat((low * c - high * s, high * c + low * s), dim=2).half(),)

    def bytes(self, dims: Dims) -> int:
        """Reads x and one of the three tables' entries for each pair; writes the output."""
        tokens, heads, width = (dims[axis.name] for axis in self.axes)
        return tokens * width * (4 * heads + 4)

    def flops(self, dims: Dims) -> int:
        """Two products and an addition for each element."""
        return 3 * self.elements(dims)


PROBLEM = Mrope()
