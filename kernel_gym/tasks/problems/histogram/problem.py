"""Histogram of each row of codes."""

from __future__ import annotations

import torch

from kernel_gym.tasks.distributions import draw_index
from kernel_gym.tasks.problem import (
    Axis,
    Check,
    Dims,
    Output,
    Problem,
    ScalarArg,
    TensorArg,
    Value,
    points,
)
from kernel_gym.tasks.workload import Workload


class Histogram(Problem):
    """`out[i, b]` is the number of elements of row i that equal b.

    Codes below 0 or from `num_bins` on do not count.
    """

    name = "histogram"
    summary = "count of each code in each row"
    category = "Index"
    level = 3
    tags = ("vision", "moe", "recommender", "memory-bound", "scatter")
    source = "8-bit channels of 1080p and ImageNet images, expert loads of Mixtral and DeepSeek-V3"
    domain = "Codes may be any int32, also far outside the bins."

    args = (TensorArg("codes", torch.int32, shape="rows, cols"), ScalarArg("num_bins", int))
    outputs = (Output("out", torch.int32, check=Check.EXACT, shape="rows, num_bins"),)
    axes = (Axis("rows", 1, 1 << 16), Axis("cols", 1, 1 << 24), Axis("num_bins", 1, 1 << 16))
    train = points(
        "rows cols num_bins",
        full=[
            (24, 2073600, 256),
            (768, 50176, 256),
            (64, 262144, 256),
            (128, 65536, 8),
            (1024, 16384, 1024),
        ],
        sim=[(1, 65536, 256), (6, 12544, 256), (4, 16384, 8), (32, 1024, 1024)],
    )
    production = points(
        "rows cols num_bins",
        full=[(3, 8294400, 256), (256, 65536, 64), (96, 150528, 512)],
        sim=[(3, 20000, 256), (12, 4096, 64), (8, 6272, 512)],
    )
    adversarial = ({"rows": 3, "cols": 1, "num_bins": 1},)
    distributions = ("uniform", "normal", "heavy_tail", "structured")

    def elements(self, dims: Dims) -> int:
        """Codes and counts."""
        return dims["rows"] * (dims["cols"] + dims["num_bins"])

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws codes by the distribution; a twentieth lies below the bins, another one above."""
        rows, cols, bins = (workload.dims[axis.name] for axis in self.axes)
        codes = draw_index((rows, cols), bins, workload.distribution, generator)
        fate = torch.rand((rows, cols), generator=generator)
        beyond = torch.randint(0, 1 << 20, (rows, cols), generator=generator)
        beyond = beyond.masked_fill(torch.rand((rows, cols), generator=generator) < 0.5, 0)
        codes = torch.where(fate < 0.05, -1 - beyond, codes)
        codes = torch.where(fate > 0.95, bins + beyond, codes)
        return {"codes": codes.int(), "num_bins": bins}

    def oracle(self, codes: torch.Tensor, num_bins: int) -> tuple[torch.Tensor, ...]:
        """Ones added at the codes, in int64, with a bin on either side that is dropped."""
        at = codes.long().clamp(-1, num_bins) + 1
        out = torch.zeros((codes.shape[0], num_bins + 2), dtype=torch.int64, device=codes.device)
        return (out.scatter_add(1, at, torch.ones_like(at))[:, 1:-1].contiguous(),)

    def reference(self, codes: torch.Tensor, num_bins: int) -> tuple[torch.Tensor, ...]:
        """The same in int32."""
        at = torch.clamp(codes, -1, num_bins).long() + 1
        out = torch.zeros((codes.shape[0], num_bins + 2), dtype=torch.int32, device=codes.device)
        ones = torch.ones_like(codes)
        return (out.scatter_add(1, at, ones)[:, 1:-1].contiguous(),)

    def flops(self, dims: Dims) -> int:
        """Integer additions do not count."""
        return 0


PROBLEM = Histogram()
