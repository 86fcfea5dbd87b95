"""Forward diffusion: noise mixed into samples by their timesteps."""

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


class AddNoise(Problem):
    """`out[b] = sqrt(a) x[b] + sqrt(1 - a) noise[b]` with `a = alphas[timestep[b]]`."""

    name = "add_noise"
    summary = "out[b] = sqrt(a) * x[b] + sqrt(1 - a) * noise[b], a = alphas[timestep[b]]"
    category = "Math"
    level = 2
    tags = ("diffusion", "training", "memory-bound")
    source = (
        "DDPM training on latents of Stable Diffusion 1.5 and XL, DiT-XL, and of CIFAR-10 images"
    )
    domain = "All floating-point inputs are finite. Timesteps lie within the steps and may repeat."

    args = (
        TensorArg("x", torch.float16, shape="batch, pixels"),
        TensorArg("noise", torch.float16, shape="batch, pixels"),
        TensorArg("alphas", torch.float32, shape="steps"),
        TensorArg("timestep", torch.int64, shape="batch"),
    )
    outputs = (Output("out", torch.float16, shape="batch, pixels"),)
    axes = (Axis("batch", 1, 1 << 16), Axis("pixels", 1, 1 << 22), Axis("steps", 2, 1 << 14))
    train = points(
        "batch pixels steps",
        full=[
            (512, 16384, 1000),
            (256, 65536, 1000),
            (1024, 4096, 1000),
            (64, 196608, 1000),
            (4096, 3072, 4000),
        ],
        sim=[(16, 16384, 1000), (4, 65536, 1000), (48, 4096, 1000), (64, 3072, 4000)],
    )
    production = points(
        "batch pixels steps",
        full=[(128, 131072, 1000), (2048, 12288, 1000), (256, 36864, 1000)],
        sim=[(2, 131072, 1000), (20, 12288, 1000), (6, 36864, 1000)],
    )
    adversarial = ({"batch": 3, "pixels": 1, "steps": 2},)
    distributions = ("normal", "uniform", "offset", "sparse")

    def elements(self, dims: Dims) -> int:
        """Elements of x."""
        return dims["batch"] * dims["pixels"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x and noise; alphas are the cumulative products of a linear schedule.

        The schedule ends at any noise from a half to all of the usual one, most often near all of
        it. One image has the last step, of the least alpha.
        """
        batch, pixels, steps = (workload.dims[a] for a in ("batch", "pixels", "steps"))
        betas = torch.linspace(1e-4, 0.02, steps, dtype=torch.float64) * min(1.0, 1000 / steps)
        betas *= 1 - 0.5 * torch.rand((), generator=generator, dtype=torch.float64) ** 3
        timestep = torch.randint(0, steps, (batch,), generator=generator)
        timestep[:1] = steps - 1
        return {
            "x": draw((batch, pixels), torch.float16, workload.distribution, generator),
            "noise": torch.randn((batch, pixels), generator=generator).half(),
            "alphas": torch.cumprod(1 - betas, 0).float(),
            "timestep": timestep,
        }

    def oracle(
        self, x: torch.Tensor, noise: torch.Tensor, alphas: torch.Tensor, timestep: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        a = alphas.double()[timestep][:, None]
        return (a.sqrt() * x.double() + (1 - a).sqrt() * noise.double(),)

    def reference(
        self, x: torch.Tensor, noise: torch.Tensor, alphas: torch.Tensor, timestep: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """Both factors and the sum in float32, rounded once."""
        a = torch.gather(alphas, 0, timestep)[:, None]
        return ((torch.sqrt(a) * x + torch.sqrt(1 - a) * noise).half(),)

    def flops(self, dims: Dims) -> int:
        """Two products and one addition for each element."""
        return 3 * self.elements(dims)


PROBLEM = AddNoise()
