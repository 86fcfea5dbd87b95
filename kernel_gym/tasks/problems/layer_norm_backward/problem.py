"""Gradients of layer normalisation."""

from __future__ import annotations

import torch

from kernel_gym.tasks.distributions import draw
from kernel_gym.tasks.problem import Axis, Dims, Output, Problem, TensorArg, Value, points
from kernel_gym.tasks.shared.scalars import one_of
from kernel_gym.tasks.workload import Workload
from kernel_gym.tasks.yardsticks import column_sums, farthest


class LayerNormBackward(Problem):
    """Gradients of `y = n * weight + bias`, `n = (x - mean) * rstd` by row, given `grad = dy`.

    `mean` and `rstd` are those of the forward pass. With `g = grad * weight`: `dx = rstd * (g -
    mean_of(g) - n * mean_of(g * n))` with means over the row. `dweight` and `dbias` are the sums
    over rows of `grad * n` and `grad`.
    """

    name = "layer_norm_backward"
    summary = "gradients of x, weight and bias of layer normalisation from saved mean and rstd"
    category = "Normalization"
    level = 3
    tags = ("vision", "audio", "diffusion", "training", "memory-bound", "backward")
    source = "training of GPT-2, GPT-2-XL, BERT-large, ViT-L/16, DiT-XL/2 and Whisper-large"

    args = (
        TensorArg("grad", torch.float16, shape="rows, cols"),
        TensorArg("x", torch.float16, shape="rows, cols"),
        TensorArg("mean", torch.float32, shape="rows"),
        TensorArg("rstd", torch.float32, shape="rows"),
        TensorArg("weight", torch.float16, shape="cols"),
    )
    outputs = (
        Output("dx", torch.float16, shape="rows, cols"),
        Output("dweight", torch.float16, shape="cols"),
        Output("dbias", torch.float16, shape="cols"),
    )
    axes = (Axis("rows", 1, 1 << 18), Axis("cols", 16, 1 << 15))
    train = points(
        "rows cols",
        full=[(16384, 768), (16384, 1024), (12608, 1152), (12000, 1280), (4096, 9216)],
        sim=[(192, 768), (128, 1024), (96, 1280), (24, 9216)],
    )
    production = points(
        "rows cols",
        full=[(8192, 1600), (8192, 4096), (2048, 12288), (50432, 384), (32768, 1536)],
        sim=[(96, 1600), (48, 4096), (12, 12288), (394, 384), (100, 1536)],
    )
    adversarial = ({"rows": 3, "cols": 17}, {"rows": 1, "cols": 130})
    distributions = ("normal", "offset", "heavy_tail", "structured")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x by the distribution, normal grad over the root of the rows, and weights."""
        rows, cols = workload.dims["rows"], workload.dims["cols"]
        x = draw((rows, cols), torch.float16, workload.distribution, generator)
        wide = x.double()
        rstd = torch.rsqrt(
            wide.var(1, unbiased=False) + one_of("eps", (1e-6, 1e-5, 1e-3), workload)
        )
        grad = draw((rows, cols), torch.float32, workload.distribution, generator)
        return {
            "grad": (grad * rows**-0.5).half(),
            "x": x,
            "mean": wide.mean(1).float(),
            "rstd": rstd.float(),
            "weight": (1 + 0.3 * torch.randn(cols, generator=generator)).half(),
        }

    def oracle(
        self,
        grad: torch.Tensor,
        x: torch.Tensor,
        mean: torch.Tensor,
        rstd: torch.Tensor,
        weight: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        dy, centre, scale = grad.double(), mean.double()[:, None], rstd.double()[:, None]
        n, g = (x.double() - centre) * scale, dy * weight.double()
        dx = scale * (g - g.mean(1, keepdim=True) - n * (g * n).mean(1, keepdim=True))
        return dx, (dy * n).sum(0), dy.sum(0)

    def reference(
        self,
        grad: torch.Tensor,
        x: torch.Tensor,
        mean: torch.Tensor,
        rstd: torch.Tensor,
        weight: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """PyTorch's gradient in float32, each output rounded once."""
        wide = weight.float()
        grads = torch.ops.aten.native_layer_norm_backward(
            grad.float(),
            x.float(),
            [x.shape[1]],
            mean[:, None],
            rstd[:, None],
            wide,
            wide,
            [True, True, True],
        )
        return grads[0].half(), grads[1].half(), grads[2].half()

    def yardstick(
        self,
        grad: torch.Tensor,
        x: torch.Tensor,
        mean: torch.Tensor,
        rstd: torch.Tensor,
        weight: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """The reference, and other orders of the sums over rows."""
        dx, dweight, dbias = self.reference(grad, x, mean, rstd, weight)
        dy, n = grad.float(), (x.float() - mean[:, None]) * rstd[:, None]
        oracle = self.oracle(grad, x, mean, rstd, weight)
        return (
            dx,
            farthest(oracle[1], (dweight, *column_sums(dy * n))),
            farthest(oracle[2], (dbias, *column_sums(dy))),
        )

    def flops(self, dims: Dims) -> int:
        """Thirteen operations for each element: two means, two sums of columns, and dx."""
        return 13 * self.elements(dims)


PROBLEM = LayerNormBackward()
