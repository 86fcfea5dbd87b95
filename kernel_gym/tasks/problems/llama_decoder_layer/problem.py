"""A whole decoder layer of Llama: one submission holds all of its kernels."""

from __future__ import annotations

import torch
import torch.nn.functional as F

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
from kernel_gym.tasks.yardsticks import divided_last, farthest

HIDDEN = "kv_heads * group * head_dim"
KEYS = "kv_heads * head_dim"


class LlamaDecoderLayer(Problem):
    """One decoder layer over one sequence, `W(y)` is `y @ W^T`, `norm` is over the last axis.

    1. `norm(y, w) = y / sqrt(mean(y^2) + eps) * w`
    2. `a = norm(x, input_norm)`, and q, k, v are `q_proj(a)`, `k_proj(a)`, `v_proj(a)`
    3. q has kv_heads * group heads, k and v have kv_heads, of head_dim each
    4. each head `[a, b]` of q and k becomes `[a cos - b sin, b cos + a sin]`, by the token
    5. query head h attends to key and value head `h // group`, each token to those up to itself:
       `softmax(q k^T / sqrt(head_dim)) v`
    6. `h = x + o_proj(attention)`, `m = norm(h, post_norm)`
    7. `out = h + down_proj(silu(gate_proj(m)) * up_proj(m))`
    """

    name = "llama_decoder_layer"
    summary = "a decoder layer of Llama in float16, from the residual stream to the residual stream"
    category = "Fusion"
    level = 5
    tags = ("decoder-llm", "compute-bound")
    source = "Llama-3-8B, Llama-2-7B, Llama-3.2-1B and 3B, TinyLlama-1.1B"
    rounding = (
        "Compute in float32. Steps may be rounded to float16 in between, as Llama does, or not: "
        "both are right."
    )

    args = (
        TensorArg("x", torch.float16, shape=f"tokens, {HIDDEN}"),
        TensorArg("input_norm", torch.float16, shape=HIDDEN),
        TensorArg("q_proj", torch.float16, shape=f"{HIDDEN}, {HIDDEN}"),
        TensorArg("k_proj", torch.float16, shape=f"{KEYS}, {HIDDEN}"),
        TensorArg("v_proj", torch.float16, shape=f"{KEYS}, {HIDDEN}"),
        TensorArg("o_proj", torch.float16, shape=f"{HIDDEN}, {HIDDEN}"),
        TensorArg("post_norm", torch.float16, shape=HIDDEN),
        TensorArg("gate_proj", torch.float16, shape=f"intermediate, {HIDDEN}"),
        TensorArg("up_proj", torch.float16, shape=f"intermediate, {HIDDEN}"),
        TensorArg("down_proj", torch.float16, shape=f"{HIDDEN}, intermediate"),
        TensorArg("cos", torch.float32, shape="tokens, head_dim / 2"),
        TensorArg("sin", torch.float32, shape="tokens, head_dim / 2"),
        ScalarArg("eps", float, values=(1e-5, 1e-3, 1e-6, 1e-2)),
    )
    outputs = (Output("out", torch.float16, shape=f"tokens, {HIDDEN}"),)
    axes = (
        Axis("tokens", 1, 1 << 14),
        Axis("kv_heads", 1, 64),
        Axis("group", 1, 16),
        Axis("head_dim", 16, 128, multiple=16),
        Axis("intermediate", 1, 1 << 15),
    )
    train = points(
        "tokens kv_heads group head_dim intermediate",
        full=[
            (2048, 8, 4, 128, 14336),
            (1024, 32, 1, 128, 11008),
            (4096, 8, 4, 64, 8192),
            (2048, 4, 8, 64, 5632),
        ],
        sim=[(48, 1, 4, 32, 224), (32, 4, 1, 32, 172), (64, 2, 2, 16, 128), (32, 1, 4, 16, 88)],
    )
    production = points(
        "tokens kv_heads group head_dim intermediate",
        full=[(1024, 8, 3, 128, 8192), (256, 8, 4, 128, 14336), (1500, 4, 8, 64, 5632)],
        sim=[(16, 2, 3, 32, 128), (24, 1, 4, 32, 224), (47, 1, 8, 16, 88)],
    )
    adversarial = ({"tokens": 5, "kv_heads": 1, "group": 3, "head_dim": 16, "intermediate": 7},)
    distributions = ("normal", "uniform", "sparse", "structured")

    def elements(self, dims: Dims) -> int:
        """Multiply-adds of all products, and of half the scores."""
        tokens, width = dims["tokens"], dims["head_dim"]
        hidden = dims["kv_heads"] * dims["group"] * width
        weights = hidden * (2 * hidden + 2 * dims["kv_heads"] * width + 3 * dims["intermediate"])
        return tokens * weights + tokens * (tokens + 1) * hidden

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws x, weights so that each branch adds about as much as x has, and angles."""
        tokens, kv_heads, group, width, inner = (workload.dims[a.name] for a in self.axes)
        hidden, keys = kv_heads * group * width, kv_heads * width

        def weight(rows: int, cols: int, gain: float = 1.0) -> torch.Tensor:
            return (torch.randn(rows, cols, generator=generator) * gain * cols**-0.5).half()

        norms = (1 + 0.3 * torch.randn(2, hidden, generator=generator)).half()
        first = int(torch.randint(0, 4096, (), generator=generator))
        position = torch.arange(first, first + tokens, dtype=torch.float64)
        angle = position[:, None] * 5e5 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
        return {
            "x": draw((tokens, hidden), torch.float16, workload.distribution, generator),
            "input_norm": norms[0].clone(),
            "q_proj": weight(hidden, hidden),
            "k_proj": weight(keys, hidden),
            "v_proj": weight(keys, hidden),
            "o_proj": weight(hidden, hidden, 2.0),
            "post_norm": norms[1].clone(),
            "gate_proj": weight(inner, hidden),
            "up_proj": weight(inner, hidden),
            "down_proj": weight(hidden, inner, 2.0),
            "cos": angle.cos().float(),
            "sin": angle.sin().float(),
            **self.scalars(workload),
        }

    def oracle(
        self,
        x: torch.Tensor,
        input_norm: torch.Tensor,
        q_proj: torch.Tensor,
        k_proj: torch.Tensor,
        v_proj: torch.Tensor,
        o_proj: torch.Tensor,
        post_norm: torch.Tensor,
        gate_proj: torch.Tensor,
        up_proj: torch.Tensor,
        down_proj: torch.Tensor,
        cos: torch.Tensor,
        sin: torch.Tensor,
        eps: float,
    ) -> tuple[torch.Tensor, ...]:
        """In fp64, head by head."""
        c, s, tokens, width = cos.double(), sin.double(), len(x), 2 * cos.shape[1]
        later = torch.ones(tokens, tokens, dtype=torch.bool, device=x.device).triu(1)
        h = x.double()

        def norm(y: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
            return y / (y.square().mean(1, keepdim=True) + eps).sqrt() * weight.double()

        def rotated(y: torch.Tensor) -> torch.Tensor:
            a, b = y[:, : width // 2], y[:, width // 2 :]
            return torch.cat([a * c - b * s, b * c + a * s], dim=1)

        a = norm(h, input_norm)
        q, k, v = (a @ weight.double().t() for weight in (q_proj, k_proj, v_proj))
        group = q.shape[1] // k.shape[1]
        attended = torch.empty_like(q)
        for head in range(q.shape[1] // width):
            own = slice(head * width, (head + 1) * width)
            shared = slice(head // group * width, (head // group + 1) * width)
            scores = rotated(q[:, own]) @ rotated(k[:, shared]).t() * width**-0.5
            weights = torch.softmax(scores.masked_fill(later, float("-inf")), dim=1)
            attended[:, own] = weights @ v[:, shared]
        h = h + attended @ o_proj.double().t()
        m = norm(h, post_norm)
        gate, up = m @ gate_proj.double().t(), m @ up_proj.double().t()
        return (h + (gate * torch.sigmoid(gate) * up) @ down_proj.double().t(),)

    def reference(
        self,
        x: torch.Tensor,
        input_norm: torch.Tensor,
        q_proj: torch.Tensor,
        k_proj: torch.Tensor,
        v_proj: torch.Tensor,
        o_proj: torch.Tensor,
        post_norm: torch.Tensor,
        gate_proj: torch.Tensor,
        up_proj: torch.Tensor,
        down_proj: torch.Tensor,
        cos: torch.Tensor,
        sin: torch.Tensor,
        eps: float,
    ) -> tuple[torch.Tensor, ...]:
        """As Llama writes it: each step rounded, norms in float32, one call for attention."""
        tokens, width = x.shape[0], 2 * cos.shape[1]
        c = torch.cat([cos, cos], dim=1).to(x.dtype)
        s = torch.cat([sin, sin], dim=1).to(x.dtype)

        def norm(y: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
            wide = y.float()
            wide = wide * torch.rsqrt(wide.pow(2).mean(1, keepdim=True) + eps)
            return weight * wide.to(y.dtype)

        def heads(y: torch.Tensor) -> torch.Tensor:
            return y.view(tokens, -1, width).transpose(0, 1)

        def rotated(y: torch.Tensor) -> torch.Tensor:
            a, b = y.chunk(2, dim=2)
            return y * c + torch.cat([-b, a], dim=2) * s

        a = norm(x, input_norm)
        q, k, v = (heads(F.linear(a, weight)) for weight in (q_proj, k_proj, v_proj))
        attended = F.scaled_dot_product_attention(
            rotated(q)[None], rotated(k)[None], v[None], is_causal=True, enable_gqa=True
        )
        h = x + F.linear(attended[0].transpose(0, 1).reshape(tokens, -1), o_proj)
        m = norm(h, post_norm)
        return (h + F.linear(F.silu(F.linear(m, gate_proj)) * F.linear(m, up_proj), down_proj),)

    def yardstick(
        self,
        x: torch.Tensor,
        input_norm: torch.Tensor,
        q_proj: torch.Tensor,
        k_proj: torch.Tensor,
        v_proj: torch.Tensor,
        o_proj: torch.Tensor,
        post_norm: torch.Tensor,
        gate_proj: torch.Tensor,
        up_proj: torch.Tensor,
        down_proj: torch.Tensor,
        cos: torch.Tensor,
        sin: torch.Tensor,
        eps: float,
    ) -> tuple[torch.Tensor, ...]:
        """The reference, and what fused kernels round: sums in float32, then each step once."""
        tokens, width = x.shape[0], 2 * cos.shape[1]

        def norm(y: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
            wide = y.float()
            scale = torch.rsqrt(wide.square().mean(1, keepdim=True) + eps)
            return (wide * scale * weight.float()).half()

        def linear(y: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
            return F.linear(y.float(), weight.float())

        def heads(y: torch.Tensor) -> torch.Tensor:
            return y.half().view(tokens, -1, width).transpose(0, 1)

        def rotated(y: torch.Tensor) -> torch.Tensor:
            a, b = heads(y).float().chunk(2, dim=2)
            return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=2).half().float()

        a = norm(x, input_norm)
        q, k = rotated(linear(a, q_proj)), rotated(linear(a, k_proj))
        v = heads(linear(a, v_proj))
        k, v = (y.repeat_interleave(len(q) // len(v), dim=0) for y in (k, v))
        later = torch.ones(tokens, tokens, dtype=torch.bool, device=x.device).triu(1)
        scores = torch.matmul(q, k.mT) * width**-0.5
        attended = divided_last(scores.masked_fill(later, float("-inf")), v)
        h = linear(attended.transpose(0, 1).reshape(tokens, -1), o_proj) + x.float()
        m = norm(h.half(), post_norm)
        gate, up = (linear(m, weight).half().float() for weight in (gate_proj, up_proj))
        inner = (F.silu(gate) * up).half()
        fused = (linear(inner, down_proj) + h.half().float()).half()
        first, second = (x, input_norm, q_proj, k_proj, v_proj, o_proj), (post_norm, gate_proj)
        (oracle,) = self.oracle(*first, *second, up_proj, down_proj, cos, sin, eps)
        (stepwise,) = self.reference(*first, *second, up_proj, down_proj, cos, sin, eps)
        return (farthest(oracle, (stepwise, fused)),)

    def flops(self, dims: Dims) -> int:
        """Two for each multiply-add."""
        return 2 * self.elements(dims)


PROBLEM = LlamaDecoderLayer()
