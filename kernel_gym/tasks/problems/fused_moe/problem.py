"""Feed-forward layer of a mixture of experts, of routed tokens."""

from __future__ import annotations

import itertools

import torch
import torch.nn.functional as F

from kernel_gym.tasks.distributions import draw
from kernel_gym.tasks.problem import Axis, Dims, Output, Problem, TensorArg, Value, points
from kernel_gym.tasks.workload import Workload


class FusedMoe(Problem):
    """`out[t] = sum over k of weight[t, k] * ffn_e(x[t])` with `e = expert[t, k]`.

    `ffn_e(x) = (silu(x gate[e]^T) * (x up[e]^T)) down[e]^T`. `order` lists the choices `t * top_k +
    k` by expert, and `start[e]` to `start[e + 1]` are those of expert e; an expert may have none,
    or all. The product before `down` may be rounded to bfloat16; sums are accumulated in float32,
    and the result is rounded once.
    """

    name = "fused_moe"
    summary = "gate, up, SwiGLU and down of the routed experts of each token, weighted and added up"
    category = "Fusion"
    level = 5
    tags = ("moe", "decoder-llm", "compute-bound", "ragged", "gather")
    source = "Mixtral-8x7B (8 experts), Qwen3-30B-A3B (128), OLMoE-1B-7B (64) and DeepSeek-V2-Lite"

    args = (
        TensorArg("x", torch.bfloat16, shape="tokens, hidden"),
        TensorArg("gate", torch.bfloat16, shape="experts, inner, hidden"),
        TensorArg("up", torch.bfloat16, shape="experts, inner, hidden"),
        TensorArg("down", torch.bfloat16, shape="experts, hidden, inner"),
        TensorArg("weight", torch.float32, shape="tokens, top_k"),
        TensorArg("order", torch.int32, shape="tokens * top_k"),
        TensorArg("start", torch.int32, shape="experts + 1"),
    )
    outputs = (Output("out", torch.bfloat16, shape="tokens, hidden"),)
    axes = (
        Axis("tokens", 1, 1 << 15),
        Axis("top_k", 1, 8),
        Axis("experts", 1, 256),
        Axis("hidden", 32, 8192, multiple=32),
        Axis("inner", 32, 16384, multiple=32),
    )
    train = points(
        "tokens top_k experts hidden inner",
        full=[
            (1024, 2, 8, 4096, 7168),
            (2048, 8, 64, 2048, 1024),
            (1024, 8, 128, 2048, 768),
            (64, 2, 8, 4096, 7168),
        ],
        sim=[(64, 2, 8, 128, 224), (48, 4, 16, 128, 96), (96, 2, 6, 160, 96), (24, 2, 4, 256, 256)],
    )
    production = points(
        "tokens top_k experts hidden inner",
        full=[
            (512, 6, 64, 2048, 1408),
            (4096, 8, 64, 2048, 1024),
            (256, 1, 16, 5120, 4096),
            (2048, 4, 60, 2048, 1408),
        ],
        sim=[(32, 6, 16, 128, 96), (128, 2, 4, 96, 96), (40, 1, 8, 160, 256), (50, 4, 15, 128, 64)],
    )
    adversarial = (
        {"tokens": 1, "top_k": 1, "experts": 1, "hidden": 32, "inner": 32},
        {"tokens": 19, "top_k": 3, "experts": 5, "hidden": 64, "inner": 32},
    )
    distributions = ("normal", "uniform", "sparse", "structured")

    def legal(self, dims: Dims) -> bool:
        """On its axes, with as many experts as are chosen."""
        return super().legal(dims) and dims["top_k"] <= dims["experts"]

    def elements(self, dims: Dims) -> int:
        """Multiply-adds of the products, or weights if these are more."""
        rows = max(dims["tokens"] * dims["top_k"], 16 * dims["experts"])
        return 3 * rows * dims["hidden"] * dims["inner"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x by the distribution, weights over the root of their fan-in, and the routing."""
        tokens, top_k, experts, hidden, inner = (workload.dims[a.name] for a in self.axes)

        def weights(rows: int, cols: int) -> torch.Tensor:
            return (torch.randn((experts, rows, cols), generator=generator) * cols**-0.5).bfloat16()

        popular = 2 * torch.rand(experts, generator=generator)
        score = torch.randn((tokens, experts), generator=generator) + popular
        logits, expert = score.topk(top_k, dim=1)
        counts = torch.bincount(expert.flatten(), minlength=experts)
        start = torch.cat((torch.zeros(1, dtype=torch.int64), counts.cumsum(0)))
        return {
            "x": draw((tokens, hidden), torch.bfloat16, workload.distribution, generator),
            "gate": weights(inner, hidden),
            "up": weights(inner, hidden),
            "down": weights(hidden, inner),
            "weight": torch.softmax(logits, dim=1),
            "order": expert.flatten().argsort(stable=True).int(),
            "start": start.int(),
        }

    def oracle(
        self,
        x: torch.Tensor,
        gate: torch.Tensor,
        up: torch.Tensor,
        down: torch.Tensor,
        weight: torch.Tensor,
        order: torch.Tensor,
        start: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """Expert by expert, in fp64."""
        out = torch.zeros(x.shape, dtype=torch.float64, device=x.device)
        top_k, bounds = weight.shape[1], start.tolist()
        for e, (low, high) in enumerate(itertools.pairwise(bounds)):
            choice = order[low:high].long()
            rows = x[choice // top_k].double()
            inner = F.silu(rows @ gate[e].double().mT) * (rows @ up[e].double().mT)
            part = (inner @ down[e].double().mT) * weight.double().flatten()[choice, None]
            out.index_add_(0, choice // top_k, part)
        return (out,)

    def reference(
        self,
        x: torch.Tensor,
        gate: torch.Tensor,
        up: torch.Tensor,
        down: torch.Tensor,
        weight: torch.Tensor,
        order: torch.Tensor,
        start: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """Three grouped products, then a sum over the choices of each token in float32."""
        tokens, top_k = weight.shape
        choice = order.long()
        rows = x[choice // top_k]
        mid = F.silu(F.grouped_mm(rows, gate.mT, offs=start[1:]))
        mid = mid * F.grouped_mm(rows, up.mT, offs=start[1:])
        part = torch.empty_like(rows)
        part[choice] = F.grouped_mm(mid, down.mT, offs=start[1:])
        total = torch.bmm(weight[:, None], part.view(tokens, top_k, -1).float())
        return (total[:, 0].bfloat16(),)

    def bytes(self, dims: Dims) -> int:
        """Reads x, the routing and the weights of one expert, the least there is; writes out."""
        tokens, top_k, experts, hidden, inner = (dims[axis.name] for axis in self.axes)
        return 4 * tokens * hidden + 8 * tokens * top_k + 4 * (experts + 1) + 6 * hidden * inner

    def flops(self, dims: Dims) -> int:
        """Three products for each choice."""
        return 6 * dims["tokens"] * dims["top_k"] * dims["hidden"] * dims["inner"]


PROBLEM = FusedMoe()
