"""Gradient of rotary position embeddings, for queries and keys."""

from __future__ import annotations

import torch

from kernel_gym.tasks.distributions import draw
from kernel_gym.tasks.problem import Axis, Dims, Output, Problem, TensorArg, Value, points
from kernel_gym.tasks.shared.scalars import one_of
from kernel_gym.tasks.workload import Workload


class RopeBackward(Problem):
    """Rotates gradients back: the transpose of the rotation that the forward pass applies.

    The forward pass turns the pair `(x[i], x[i + head_dim / 2])` of token t by the angle with the
    cosine `cos[position[t], i]` and the sine `sin[position[t], i]`: `y[i] = x[i] cos - x[i +
    head_dim / 2] sin`, `y[i + head_dim / 2] = x[i + head_dim / 2] cos + x[i] sin`. `dq` and `dk`
    are the gradients of x from `gq` and `gk`. Positions repeat and have any order.
    """

    name = "rope_backward"
    summary = "gradients of queries and keys through rotate-half RoPE, by position of each token"
    category = "Fusion"
    level = 2
    tags = ("decoder-llm", "moe", "training", "memory-bound", "backward")
    source = "heads of Llama-3-8B (32 and 8), Qwen2.5-7B (28 and 4), Llama-2-7B and Phi-3-mini"

    args = (
        TensorArg("gq", torch.float16, shape="tokens, heads, head_dim"),
        TensorArg("gk", torch.float16, shape="tokens, kv_heads, head_dim"),
        TensorArg("cos", torch.float32, shape="context, head_dim / 2"),
        TensorArg("sin", torch.float32, shape="context, head_dim / 2"),
        TensorArg("position", torch.int64, shape="tokens"),
    )
    outputs = (
        Output("dq", torch.float16, shape="tokens, heads, head_dim"),
        Output("dk", torch.float16, shape="tokens, kv_heads, head_dim"),
    )
    axes = (
        Axis("tokens", 1, 1 << 18),
        Axis("heads", 1, 128),
        Axis("kv_heads", 1, 128),
        Axis("head_dim", 32, 256, multiple=32),
        Axis("context", 1, 1 << 17),
    )
    train = points(
        "tokens heads kv_heads head_dim context",
        full=[
            (8192, 32, 8, 128, 8192),
            (8192, 28, 4, 128, 32768),
            (4096, 32, 32, 128, 4096),
            (16384, 32, 8, 64, 131072),
        ],
        sim=[
            (64, 32, 8, 128, 256),
            (96, 14, 2, 64, 512),
            (48, 16, 16, 128, 128),
            (128, 8, 8, 96, 64),
        ],
    )
    production = points(
        "tokens heads kv_heads head_dim context",
        full=[
            (4096, 64, 8, 128, 8192),
            (8192, 16, 8, 256, 8192),
            (4096, 32, 32, 96, 4096),
            (8192, 40, 10, 128, 16384),
        ],
        sim=[
            (32, 64, 8, 128, 100),
            (48, 16, 8, 256, 80),
            (32, 32, 32, 96, 300),
            (40, 40, 10, 128, 160),
        ],
    )
    adversarial = ({"tokens": 3, "heads": 1, "kv_heads": 2, "head_dim": 32, "context": 5},)
    distributions = ("normal", "uniform", "sparse", "heavy_tail")

    def elements(self, dims: Dims) -> int:
        """Elements of both gradients."""
        return dims["tokens"] * (dims["heads"] + dims["kv_heads"]) * dims["head_dim"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws gradients by the distribution, the angles of a base, and positions.

        Angles are one to two times smaller than those of the base, as in a longer context.
        """
        tokens, heads, kv_heads, width, context = (workload.dims[a.name] for a in self.axes)
        base = one_of("base", (1e4, 5e5, 1e6), workload)
        pitch = base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
        pitch /= 1 + torch.rand((), generator=generator, dtype=torch.float64)
        angle = torch.arange(context, dtype=torch.float64)[:, None] * pitch
        kind = workload.distribution
        return {
            "gq": draw((tokens, heads, width), torch.float16, kind, generator),
            "gk": draw((tokens, kv_heads, width), torch.float16, kind, generator),
            "cos": angle.cos().float(),
            "sin": angle.sin().float(),
            "position": torch.randint(context, (tokens,), generator=generator),
        }

    def oracle(
        self,
        gq: torch.Tensor,
        gk: torch.Tensor,
        cos: torch.Tensor,
        sin: torch.Tensor,
        position: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """In fp64, both tensors by one function."""
        c, s = (t.double()[position][:, None, :] for t in (cos, sin))

        def back(g: torch.Tensor) -> torch.Tensor:
            low, high = g.double().chunk(2, dim=2)
            return torch.cat((low * c + high * s, high * c - low * s), dim=2)

        return back(gq), back(gk)

    def reference(
        self,
        gq: torch.Tensor,
        gk: torch.Tensor,
        cos: torch.Tensor,
        sin: torch.Tensor,
        position: torch.Tensor,
    ) -> tuple[torch.Tensor, ...]:
        """Operator by operator in float32, rounded once."""
        c, s = cos[position][:, None, :], sin[position][:, None, :]
        out = []
        for g in (gq, gk):
            low, high = g.float().chunk(2, dim=2)
            out.append(torch.cat((low * c + high * s, high * c - low * s), dim=2).half())
        return tuple(out)

    def bytes(self, dims: Dims) -> int:
        """Reads gradients and positions, and at least one row of the tables; writes the outputs."""
        return 4 * self.elements(dims) + 8 * dims["tokens"] + 4 * dims["head_dim"]

    def flops(self, dims: Dims) -> int:
        """Two products and a sum for each element."""
        return 3 * self.elements(dims)


PROBLEM = RopeBackward()
