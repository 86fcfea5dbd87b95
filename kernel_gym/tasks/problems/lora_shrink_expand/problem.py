"""Many LoRA adapters at once: each token adds the low-rank product of its own adapter."""

from __future__ import annotations

import torch

from kernel_gym.tasks.distributions import draw, draw_mask
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


class LoraShrinkExpand(Problem):
    """`out[t] = base[t] + scale[i] * (x[t] @ a[i]) @ b[i]` with i = adapter[t]; -1 adds nothing."""

    name = "lora_shrink_expand"
    summary = "base + scale[i] * (x @ a[i]) @ b[i] for each token's adapter i; i = -1 adds nothing"
    category = "MatMul"
    level = 4
    tags = ("decoder-llm", "moe", "memory-bound", "ragged")
    source = "multi-adapter serving of Llama-2-7B, Llama-3-8B, Mistral-7B and Qwen2.5-7B"
    domain = "All floating-point inputs are finite. An adapter is -1 or one of the adapters."

    args = (
        TensorArg("x", torch.float16, shape="tokens, width"),
        TensorArg("a", torch.float16, shape="adapters, width, rank"),
        TensorArg("b", torch.float16, shape="adapters, rank, out_width"),
        TensorArg("scale", torch.float32, shape="adapters"),
        TensorArg("adapter", torch.int32, shape="tokens"),
        TensorArg("base", torch.float16, shape="tokens, out_width"),
    )
    outputs = (Output("out", torch.float16, shape="tokens, out_width"),)
    axes = (
        Axis("tokens", 1, 1 << 14),
        Axis("adapters", 1, 256),
        Axis("rank", 8, 64, multiple=8),
        Axis("width", 16, 1 << 14, multiple=16),
        Axis("out_width", 16, 1 << 14, multiple=16),
    )
    train = points(
        "tokens adapters rank width out_width",
        full=[
            (1024, 8, 16, 4096, 4096),
            (256, 32, 8, 4096, 1024),
            (512, 16, 64, 4096, 14336),
            (1024, 4, 32, 3584, 3584),
        ],
        sim=[
            (128, 8, 16, 512, 512),
            (64, 16, 8, 1024, 256),
            (32, 4, 64, 512, 512),
            (96, 4, 32, 448, 448),
        ],
    )
    production = points(
        "tokens adapters rank width out_width",
        full=[(2048, 8, 8, 5120, 5120), (64, 64, 16, 4096, 12288), (768, 12, 24, 2048, 8192)],
        sim=[(128, 8, 8, 640, 640), (32, 16, 16, 512, 768), (96, 6, 24, 256, 512)],
    )
    adversarial = ({"tokens": 3, "adapters": 1, "rank": 8, "width": 16, "out_width": 48},)
    distributions = ("normal", "uniform", "sparse", "structured")

    def legal(self, dims: Dims) -> bool:
        """On its axes, with a token for each adapter."""
        return super().legal(dims) and dims["adapters"] <= dims["tokens"]

    def elements(self, dims: Dims) -> int:
        """Multiply-adds."""
        return dims["tokens"] * dims["rank"] * (dims["width"] + dims["out_width"])

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws float16 matrices; every adapter has a token, a tenth of the rest has none."""
        tokens, adapters, rank, width, out_width = (workload.dims[a.name] for a in self.axes)
        kind = workload.distribution
        x = draw((tokens, width), torch.float16, kind, generator)
        a = draw((adapters, width, rank), torch.float32, kind, generator) * width**-0.5
        b = torch.randn(adapters, rank, out_width, generator=generator) * rank**-0.5
        adapter = torch.randint(0, adapters, (tokens,), generator=generator)
        adapter[draw_mask((tokens,), 0.1, generator)] = -1
        adapter[:adapters] = torch.arange(adapters)
        return {
            "x": x,
            "a": a.half(),
            "b": b.half(),
            "scale": 0.5 + 1.5 * torch.rand(adapters, generator=generator),
            "adapter": adapter[torch.randperm(tokens, generator=generator)].int(),
            "base": draw((tokens, out_width), torch.float16, kind, generator),
        }

    def oracle(
        self,
        x: torch.Tensor,
        a: torch.Tensor,
        b: torch.Tensor,
        scale: torch.Tensor,
        adapter: torch.Tensor,
        base: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """Adapter by adapter, in fp64."""
        out = base.double().clone()
        for i in range(a.shape[0]):
            mine = adapter == i
            low = x[mine].double() @ a[i].double()
            out[mine] += scale[i].double() * (low @ b[i].double())
        return (out,)

    def reference(
        self,
        x: torch.Tensor,
        a: torch.Tensor,
        b: torch.Tensor,
        scale: torch.Tensor,
        adapter: torch.Tensor,
        base: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """Two batched products with gathered adapters."""
        at = adapter.clamp(min=0).long()
        low = torch.bmm(x[:, None, :], a[at])
        high = torch.bmm(low, b[at])[:, 0, :].float() * scale[at][:, None]
        return (base + torch.where(adapter[:, None] >= 0, high, 0.0).half(),)

    def flops(self, dims: Dims) -> int:
        """Two products of the tokens that must have an adapter."""
        return 2 * dims["adapters"] * dims["rank"] * (dims["width"] + dims["out_width"])


PROBLEM = LoraShrinkExpand()
