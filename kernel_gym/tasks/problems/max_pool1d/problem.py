"""Max pooling along sequences."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from kernel_gym.tasks.distributions import draw
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


class MaxPool1d(Problem):
    """`out[b, c, i] = max of x[b, c, i * stride - pad .. i * stride - pad + window - 1]`.

    Places outside of the sequence do not take part; `pad` is at most half of the window, so that
    every window holds an element.
    """

    name = "max_pool1d"
    summary = "1-D max pooling with window, stride and padding, without the padded places"
    category = "Pooling"
    level = 2
    tags = ("audio", "memory-bound")
    source = "wav2vec 2.0 features, temporal pooling of Conv-TasNet, M5 and CRNN audio networks"

    args = (
        TensorArg("x", torch.float16, shape="batch, channels, length"),
        ScalarArg("window", int),
        ScalarArg("stride", int),
        ScalarArg("pad", int),
    )
    outputs = (
        Output(
            "out",
            torch.float16,
            check=Check.EXACT,
            shape="batch, channels, (length + 2 * pad - window) // stride + 1",
        ),
    )
    axes = (
        Axis("batch", 1, 1024),
        Axis("channels", 1, 4096),
        Axis("length", 1, 1 << 20),
        Axis("window", 1, 16),
        Axis("stride", 1, 16),
        Axis("pad", 0, 8),
    )
    train = points(
        "batch channels length window stride pad",
        full=[
            (32, 512, 8000, 4, 4, 0),
            (64, 128, 16000, 3, 2, 1),
            (16, 1024, 3000, 8, 8, 4),
            (128, 64, 4000, 5, 3, 2),
        ],
        sim=[
            (2, 32, 2000, 4, 4, 0),
            (4, 16, 1600, 3, 2, 1),
            (1, 64, 1500, 8, 8, 4),
            (4, 16, 1000, 5, 3, 2),
        ],
    )
    production = points(
        "batch channels length window stride pad",
        full=[
            (8, 512, 50000, 2, 2, 0),
            (256, 32, 8000, 3, 1, 1),
            (64, 256, 1500, 10, 5, 5),
            (4, 64, 480000, 16, 8, 4),
        ],
        sim=[
            (1, 64, 2500, 2, 2, 0),
            (8, 8, 1200, 3, 1, 1),
            (4, 32, 750, 10, 5, 5),
            (1, 2, 48000, 16, 8, 4),
        ],
    )
    adversarial = (
        {"batch": 1, "channels": 3, "length": 1, "window": 2, "stride": 1, "pad": 1},
        {"batch": 2, "channels": 1, "length": 17, "window": 5, "stride": 7, "pad": 2},
    )
    distributions = ("normal", "large", "constant_rows", "structured")

    def legal(self, dims: Dims) -> bool:
        """On its axes, with padding of at most half a window, and windows that fit."""
        window, pad = dims["window"], dims["pad"]
        return super().legal(dims) and 2 * pad <= window <= dims["length"] + pad

    def elements(self, dims: Dims) -> int:
        """Elements of the sequences."""
        return dims["batch"] * dims["channels"] * dims["length"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x by the distribution, shifted below zero in half of the channels."""
        batch, channels, length, window, stride, pad = (workload.dims[a.name] for a in self.axes)
        x = draw((batch, channels, length), torch.float32, workload.distribution, generator)
        shift = torch.where(torch.rand((channels, 1), generator=generator) < 0.5, -5.0, 0.0)
        return {"x": (x + shift).half(), "window": window, "stride": stride, "pad": pad}

    def oracle(
        self, x: torch.Tensor, window: int, stride: int, pad: int
    ) -> tuple[torch.Tensor, ...]:
        """The largest of all windows, in fp64."""
        padded = F.pad(x.double(), (pad, pad), value=float("-inf"))
        return (padded.unfold(2, window, stride).amax(3),)

    def reference(
        self, x: torch.Tensor, window: int, stride: int, pad: int
    ) -> tuple[torch.Tensor, ...]:
        """One PyTorch call."""
        return (F.max_pool1d(x, window, stride, pad),)

    def flops(self, dims: Dims) -> int:
        """A comparison for each output, the least that any window needs."""
        rest = dims["length"] + 2 * dims["pad"] - dims["window"]
        return dims["batch"] * dims["channels"] * (rest // dims["stride"] + 1)


PROBLEM = MaxPool1d()
