"""Rotary embedding by row and column of an image's patches."""

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


class Rope2d(Problem):
    """Turns the pairs `(a, b) = (x[i], x[i + head_dim / 2])` of each head by an angle.

    `[a, b]` becomes `[a cos - b sin, b cos + a sin]`. The angle is `row * pitch[i]` for `i <
    head_dim / 4`, else `column * pitch[i - head_dim / 4]`.
    """

    name = "rope_2d"
    summary = "rotary embedding of heads at places (row, column)"
    category = "Fusion"
    level = 3
    tags = ("vision", "decoder-llm", "memory-bound")
    source = "vision towers of Qwen2-VL (16 heads of 80), Pixtral (16 of 64) and Kimi-VL (16 of 72)"

    args = (
        TensorArg("x", torch.float16, shape="tokens, heads, head_dim"),
        TensorArg("place", torch.int32, shape="tokens, 2"),
        TensorArg("pitch", torch.float32, shape="head_dim / 4"),
    )
    outputs = (Output("out", torch.float16, shape="tokens, heads, head_dim"),)
    axes = (
        Axis("tokens", 1, 1 << 20),
        Axis("heads", 1, 256),
        Axis("head_dim", 8, 256, multiple=8),
    )
    train = points(
        "tokens heads head_dim",
        full=[(16384, 16, 80), (16384, 16, 64), (8192, 16, 72), (4096, 24, 128)],
        sim=[(96, 16, 80), (128, 16, 64), (112, 16, 72), (40, 24, 128)],
    )
    production = points(
        "tokens heads head_dim",
        full=[(32768, 16, 80), (4096, 12, 64), (8192, 32, 128)],
        sim=[(64, 16, 80), (192, 12, 64), (32, 32, 128)],
    )
    adversarial = ({"tokens": 1, "heads": 3, "head_dim": 8},)
    distributions = ("normal", "offset", "tiny", "large")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x; tokens are the patches of images of random widths, read row by row.

        The pitches are those of the usual base, times up to two or a half.
        """
        tokens, heads, width = (workload.dims[axis.name] for axis in self.axes)
        x = draw((tokens, heads, width), torch.float16, workload.distribution, generator)
        columns = int(torch.randint(8, 65, (), generator=generator))
        number = int(torch.randint(0, 64, (), generator=generator)) + torch.arange(tokens)
        place = torch.stack([number // columns % 64, number % columns], dim=1)
        pitch = 10000.0 ** (-torch.arange(0, width, 4, dtype=torch.float64) / width)
        pitch *= 2.0 ** (2 * torch.rand(len(pitch), generator=generator) - 1)
        return {"x": x, "place": place.int(), "pitch": pitch.float()}

    def oracle(
        self, x: torch.Tensor, place: torch.Tensor, pitch: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """The rotation of each pair, in fp64."""
        angle = (place.double()[:, :, None] * pitch.double()).flatten(1)[:, None]
        a, b = x.double().chunk(2, dim=2)
        c, s = angle.cos(), angle.sin()
        return (torch.cat([a * c - b * s, b * c + a * s], dim=2),)

    def reference(
        self, x: torch.Tensor, place: torch.Tensor, pitch: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """As vision towers write it: angles of both places, then `x cos + rotate_half(x) sin`."""
        by_row = place[:, :1].float() * pitch
        by_column = place[:, 1:].float() * pitch
        angle = torch.cat([by_row, by_column, by_row, by_column], dim=1)[:, None, :]
        wide = x.float()
        a, b = wide.chunk(2, dim=2)
        rotated = torch.cat([-b, a], dim=2)
        return ((wide * torch.cos(angle) + rotated * torch.sin(angle)).half(),)

    def flops(self, dims: Dims) -> int:
        """Two products and an addition for each element, an angle and its waves a token's pair."""
        return 3 * self.elements(dims) + 3 * dims["tokens"] * dims["head_dim"] // 2


PROBLEM = Rope2d()
