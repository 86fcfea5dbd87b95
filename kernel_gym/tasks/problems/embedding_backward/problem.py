"""Gradient of an embedding table."""

from __future__ import annotations

import torch

from kernel_gym.tasks.distributions import draw, draw_index, draw_mask
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


class EmbeddingBackward(Problem):
    """`out[v, :] = sum of grad[t, :] over all t with ids[t] = v`; row `padding` stays zero.

    `padding` is a row that is not trained, or -1 if there is none. Words repeat, also many times.
    Sums are accumulated in float32, in any order.
    """

    name = "embedding_backward"
    summary = (
        "float32 sums of the gradients of all tokens with the same id; no gradient for padding"
    )
    category = "Index"
    level = 3
    tags = ("decoder-llm", "recommender", "training", "memory-bound", "scatter", "backward")
    source = "embeddings of GPT-2, BERT-large, Llama-2-7B and a 128-wide table of DLRM, by device"

    args = (
        TensorArg("grad", torch.float16, shape="tokens, dim"),
        TensorArg("ids", torch.int64, shape="tokens"),
        ScalarArg("vocab", int),
        ScalarArg("padding", int, values=(0, -1, 1)),
    )
    outputs = (Output("out", torch.float32, shape="vocab, dim"),)
    axes = (Axis("tokens", 1, 1 << 20), Axis("vocab", 2, 1 << 18), Axis("dim", 1, 1 << 14))
    train = points(
        "tokens vocab dim",
        full=[(16384, 50257, 768), (8192, 30522, 1024), (8192, 32000, 4096), (65536, 100000, 128)],
        sim=[(512, 500, 128), (256, 300, 256), (128, 320, 512), (2048, 1000, 64)],
    )
    production = points(
        "tokens vocab dim",
        full=[(4096, 65024, 2048), (32768, 51866, 1280), (131072, 10000, 64), (8192, 50272, 512)],
        sim=[(64, 650, 256), (512, 518, 160), (3000, 100, 64), (128, 512, 300)],
    )
    adversarial = ({"tokens": 3, "vocab": 5, "dim": 1}, {"tokens": 40, "vocab": 2, "dim": 3})
    distributions = ("normal", "uniform", "heavy_tail", "sparse")

    def elements(self, dims: Dims) -> int:
        """Elements of the gradients and the output."""
        return (dims["tokens"] + dims["vocab"]) * dims["dim"]

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws grad by the distribution; few ids are frequent, as words of a language.

        The first token has the last id that is not the padding, so that one token has a gradient.
        """
        tokens, vocab, dim = (workload.dims[axis.name] for axis in self.axes)
        padding = int(self.scalars(workload)["padding"])
        ids = draw_index((tokens,), vocab, "heavy_tail", generator)
        pad = draw_mask((tokens,), 0.1, generator)
        ids[:1] = vocab - 1 - (padding == vocab - 1)
        return {
            "grad": draw((tokens, dim), torch.float16, workload.distribution, generator),
            "ids": torch.where(pad, max(padding, 0), ids),
            "vocab": vocab,
            "padding": padding,
        }

    def oracle(
        self, grad: torch.Tensor, ids: torch.Tensor, vocab: int, padding: int
    ) -> tuple[torch.Tensor, ...]:
        """In fp64."""
        out = torch.zeros((vocab, grad.shape[1]), dtype=torch.float64, device=grad.device)
        out.index_add_(0, ids, grad.double() * (ids != padding)[:, None])
        return (out,)

    def reference(
        self, grad: torch.Tensor, ids: torch.Tensor, vocab: int, padding: int
    ) -> tuple[torch.Tensor, ...]:
        """One PyTorch call, in float32."""
        return (torch.ops.aten.embedding_dense_backward(grad.float(), ids, vocab, padding, False),)

    def yardstick(
        self, grad: torch.Tensor, ids: torch.Tensor, vocab: int, padding: int
    ) -> tuple[torch.Tensor, ...]:
        """Term by term: on a GPU PyTorch sums in parts, which not every order of sums reaches."""
        out = torch.zeros((vocab, grad.shape[1]), device=grad.device)
        return (out.index_add_(0, ids, grad.float() * (ids != padding)[:, None]),)

    def flops(self, dims: Dims) -> int:
        """An addition for each element of grad."""
        return dims["tokens"] * dims["dim"]


PROBLEM = EmbeddingBackward()
