"""One-hot rows of class indices."""

from __future__ import annotations

import torch

from kernel_gym.tasks.distributions import draw_index, draw_mask
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


class OneHot(Problem):
    """`out[t, c] = 1 if ids[t] = c else 0`; an index of -1 gives a row of zeros."""

    name = "one_hot"
    summary = "out[t, ids[t]] = 1, everything else 0; a row of zeros where ids[t] is -1"
    category = "Index"
    level = 1
    tags = ("protein", "vision", "memory-bound")
    source = "residue types and distance bins of AlphaFold 2, labels of ImageNet and COCO for mixup"
    domain = "Indices are -1 or lie within the classes."

    args = (TensorArg("ids", torch.int64, shape="tokens"), ScalarArg("num_classes", int))
    outputs = (Output("out", torch.int32, check=Check.EXACT, shape="tokens, num_classes"),)
    axes = (Axis("tokens", 1, 1 << 24), Axis("num_classes", 1, 1 << 18))
    train = points(
        "tokens num_classes",
        full=[(262144, 23), (147456, 64), (16384, 1000), (65536, 256), (1024, 32000)],
        sim=[(8192, 23), (4096, 64), (256, 1000), (16, 16000)],
    )
    production = points(
        "tokens num_classes",
        full=[(589824, 39), (131072, 91), (4096, 21841)],
        sim=[(5000, 39), (3000, 91), (12, 21841)],
    )
    adversarial = ({"tokens": 3, "num_classes": 1},)
    distributions = ("uniform", "normal", "sparse", "structured")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws indices, a tenth of them -1."""
        tokens, classes = workload.dims["tokens"], workload.dims["num_classes"]
        ids = draw_index((tokens,), classes, workload.distribution, generator)
        unknown = draw_mask((tokens,), 0.1, generator)
        return {"ids": ids.masked_fill(unknown, -1), "num_classes": classes}

    def oracle(self, ids: torch.Tensor, num_classes: int) -> tuple[torch.Tensor, ...]:
        """By comparison with every class."""
        return ((ids[:, None] == torch.arange(num_classes, device=ids.device)).long(),)

    def reference(self, ids: torch.Tensor, num_classes: int) -> tuple[torch.Tensor, ...]:
        """Ones scattered into zeros that are one column wider, where -1 goes."""
        out = torch.zeros((ids.shape[0], num_classes + 1), dtype=torch.int32, device=ids.device)
        at = torch.where(ids < 0, num_classes, ids)
        out = out.scatter(1, at[:, None], 1)
        return (out[:, :num_classes].contiguous(),)

    def flops(self, dims: Dims) -> int:
        """None."""
        return 0


PROBLEM = OneHot()
