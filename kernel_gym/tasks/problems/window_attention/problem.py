"""Attention within the shifted windows of a Swin transformer."""

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

WIDTH = 32


class WindowAttention(Problem):
    """`softmax(scale * q k^T + bias[h] + mask[w % windows]) v` for each window and head.

    A window has side x side positions; its mask is 0 or -100, by its place in the image.
    """

    name = "window_attention"
    summary = "attention within windows, with a bias by head and a mask by window"
    category = "Attention"
    level = 4
    tags = ("vision", "compute-bound")
    source = "stages of Swin-T, Swin-B (7 x 7 windows, heads of 32) and SwinV2-B (8 x 8)"

    args = (
        TensorArg("q", torch.float16, shape="images * windows, heads, side * side, 32"),
        TensorArg("k", torch.float16, shape="images * windows, heads, side * side, 32"),
        TensorArg("v", torch.float16, shape="images * windows, heads, side * side, 32"),
        TensorArg("bias", torch.float16, shape="heads, side * side, side * side"),
        TensorArg("mask", torch.float16, shape="windows, side * side, side * side"),
        ScalarArg("scale", float, values=(0.1768, 0.125, 0.25, 0.0625)),
    )
    outputs = (Output("out", torch.float16, shape="images * windows, heads, side * side, 32"),)
    axes = (
        Axis("images", 1, 512),
        Axis("windows", 1, 1024),
        Axis("heads", 1, 48),
        Axis("side", 2, 12),
    )
    train = points(
        "images windows heads side",
        full=[(64, 64, 3, 7), (64, 16, 6, 7), (32, 64, 4, 7), (32, 64, 4, 8)],
        sim=[(2, 9, 3, 7), (4, 4, 3, 7), (2, 4, 4, 8), (1, 4, 3, 10)],
    )
    production = points(
        "images windows heads side",
        full=[(128, 4, 12, 7), (16, 64, 4, 12), (32, 16, 8, 8)],
        sim=[(3, 4, 4, 7), (1, 2, 4, 12), (2, 4, 6, 6)],
    )
    adversarial = ({"images": 1, "windows": 1, "heads": 2, "side": 3},)
    distributions = ("normal", "uniform", "structured")

    def elements(self, dims: Dims) -> int:
        """Entries of the score matrices, in blocks of 16 rows and a power of 2 of columns."""
        places = dims["side"] ** 2
        padded = -(-places // 16) * 16 * (1 << (places - 1).bit_length())
        return dims["images"] * dims["windows"] * dims["heads"] * padded

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws float16 tensors; a quarter of the windows masks some regions from each other."""
        images, windows, heads, side = (workload.dims[axis.name] for axis in self.axes)
        places, kind = side * side, workload.distribution
        shape = (images * windows, heads, places, WIDTH)
        q, k, v = (draw(shape, torch.float16, kind, generator) for _ in range(3))
        region = torch.randint(0, 4, (windows, places), generator=generator)
        region *= torch.rand(windows, 1, generator=generator) < 0.5
        apart = region[:, :, None] != region[:, None, :]
        return {
            "q": q,
            "k": k,
            "v": v,
            "bias": torch.randn(heads, places, places, generator=generator).half(),
            "mask": torch.where(apart, -100.0, 0.0).half(),
            **self.scalars(workload),
        }

    def oracle(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        bias: torch.Tensor,
        mask: torch.Tensor,
        scale: float,
    ) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        scores = q.double() @ k.double().mT * scale + bias.double()
        images = q.shape[0] // mask.shape[0]
        scores += mask.double().repeat(images, 1, 1)[:, None]
        return (torch.softmax(scores, dim=-1) @ v.double(),)

    def reference(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        bias: torch.Tensor,
        mask: torch.Tensor,
        scale: float,
    ) -> tuple[torch.Tensor, ...]:
        """As Swin writes it: scores, bias, mask, softmax, product."""
        windows, heads, places, _ = q.shape
        scores = torch.matmul(q * scale, k.transpose(2, 3)) + bias[None]
        masked = scores.view(-1, mask.shape[0], heads, places, places) + mask[None, :, None]
        weights = torch.softmax(masked.view(windows, heads, places, places), dim=-1)
        return (torch.matmul(weights, v),)

    def flops(self, dims: Dims) -> int:
        """Two products over all scores."""
        images, windows, heads, side = (dims[axis.name] for axis in self.axes)
        return 4 * images * windows * heads * side**4 * WIDTH


PROBLEM = WindowAttention()
