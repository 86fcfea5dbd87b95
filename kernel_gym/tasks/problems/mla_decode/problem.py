"""Multi-head latent attention of one new token a sequence."""

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

LATENT = 512
ROPE = 64


class MlaDecode(Problem):
    """`softmax(scale * q kv^T) kv[:, :512]` by head over the first `length[b]` rows of `kv[b]`.

    All heads share one latent row of 512 + 64 (rotary) a key, as in DeepSeek's absorbed form.
    """

    name = "mla_decode"
    summary = "one-token attention of all heads to one latent KV row (512 + 64) a key"
    category = "Attention"
    level = 5
    tags = ("moe", "decoder-llm", "memory-bound", "ragged")
    source = "decode of DeepSeek-V2-Lite (16 heads), DeepSeek-V3 (128, and 16 by tensor parallel)"
    domain = (
        "All floating-point inputs are finite. Each length is at least 1 and at most the context."
    )

    args = (
        TensorArg("q", torch.float16, shape="batch, heads, 576"),
        TensorArg("kv", torch.float16, shape="batch, context, 576"),
        TensorArg("length", torch.int32, shape="batch"),
        ScalarArg("scale", float, values=(0.0417, 0.0722, 0.1, 0.02)),
    )
    outputs = (Output("out", torch.float16, shape="batch, heads, 512"),)
    axes = (Axis("batch", 1, 512), Axis("heads", 1, 128), Axis("context", 1, 1 << 16))
    train = points(
        "batch heads context",
        full=[(32, 16, 4096), (8, 128, 4096), (64, 16, 2048), (16, 32, 8192)],
        sim=[(4, 16, 128), (1, 64, 128), (6, 16, 64), (2, 32, 128)],
    )
    production = points(
        "batch heads context",
        full=[(16, 64, 4096), (128, 16, 1024), (4, 128, 6000)],
        sim=[(2, 48, 96), (8, 16, 48), (1, 32, 200)],
    )
    adversarial = ({"batch": 1, "heads": 3, "context": 1},)
    distributions = ("normal", "uniform", "structured", "wide")

    def elements(self, dims: Dims) -> int:
        """Entries of the scores, by heads in steps of 16."""
        return dims["batch"] * (-(-dims["heads"] // 16) * 16) * dims["context"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws q and kv float16, lengths from half to all of the context.

        One length of several may be shorter, down to 1.
        """
        batch, heads, context = (workload.dims[axis.name] for axis in self.axes)
        kind, width = workload.distribution, LATENT + ROPE
        least = (context + 1) // 2
        length = torch.randint(least, context + 1, (batch,), generator=generator)
        if batch > 1:
            one = int(torch.randint(0, batch, (), generator=generator))
            length[one] = torch.randint(1, context + 1, (), generator=generator) ** 2 // context + 1
        length = length.clamp(1, context).int()
        return {
            "q": draw((batch, heads, width), torch.float16, kind, generator),
            "kv": draw((batch, context, width), torch.float16, kind, generator),
            "length": length,
            **self.scalars(workload),
        }

    def oracle(
        self, q: torch.Tensor, kv: torch.Tensor, length: torch.Tensor, scale: float
    ) -> tuple[torch.Tensor, ...]:
        """Sequence by sequence, in fp64."""
        rows = []
        for b, count in enumerate(length.tolist()):
            keys = kv[b, :count].double()
            weights = torch.softmax(q[b].double() @ keys.t() * scale, dim=-1)
            rows.append(weights @ keys[:, :LATENT])
        return (torch.stack(rows),)

    def reference(
        self, q: torch.Tensor, kv: torch.Tensor, length: torch.Tensor, scale: float
    ) -> tuple[torch.Tensor, ...]:
        """PyTorch's attention, in which the heads are the queries of one shared head."""
        seen = torch.arange(kv.shape[1], device=q.device) < length[:, None]
        out = F.scaled_dot_product_attention(
            q[:, None],
            kv[:, None],
            kv[:, None, :, :512],
            attn_mask=seen[:, None, None, :],
            scale=scale,
        )
        return (out[:, 0].contiguous(),)

    def bytes(self, dims: Dims) -> int:
        """Read q, length and the least of kv that lengths allow, write out."""
        batch, heads, context = (dims[axis.name] for axis in self.axes)
        queries = batch * (2 * heads * (LATENT + ROPE) + 4 + 2 * heads * LATENT)
        return queries + 2 * self._least_keys(batch, context) * (LATENT + ROPE)

    def flops(self, dims: Dims) -> int:
        """Two products over the least number of keys."""
        batch, heads, context = (dims[axis.name] for axis in self.axes)
        return 2 * heads * self._least_keys(batch, context) * (2 * LATENT + ROPE)

    @staticmethod
    def _least_keys(batch: int, context: int) -> int:
        """Half the context for all sequences but one, which may have a single key."""
        long = max(1, batch - 1)
        return long * ((context + 1) // 2) + batch - long


PROBLEM = MlaDecode()
