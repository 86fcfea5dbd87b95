"""Late-interaction scores of queries and documents."""

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
from kernel_gym.tasks.yardsticks import farthest, products_by_matrix_units, products_in_order


class Maxsim(Problem):
    """`out[q, d] = sum over i of the largest query[q, i] . doc[d, j]`, j from 0 to length[d] - 1.

    Products are accumulated, compared and added in float32.
    """

    name = "maxsim"
    summary = "sum over query tokens of the best dot product with a document's tokens"
    category = "MatMul"
    level = 4
    tags = ("recommender", "compute-bound", "ragged", "reduction")
    source = "ColBERTv2 (32 query tokens of 128, documents of up to 180), ColPali (1030 patches)"
    domain = (
        "All floating-point inputs are finite. A length is from 1 to doc_len; tokens beyond it do "
        "not count."
    )

    args = (
        TensorArg("query", torch.float16, shape="queries, query_len, width"),
        TensorArg("doc", torch.float16, shape="docs, doc_len, width"),
        TensorArg("length", torch.int32, shape="docs"),
    )
    outputs = (Output("out", torch.float32, shape="queries, docs"),)
    axes = (
        Axis("queries", 1, 4096),
        Axis("query_len", 1, 256),
        Axis("docs", 1, 1 << 16),
        Axis("doc_len", 1, 4096),
        Axis("width", 16, 256, multiple=16),
    )
    train = points(
        "queries query_len docs doc_len width",
        full=[
            (16, 32, 4096, 180, 128),
            (1, 32, 20000, 180, 128),
            (4, 20, 1000, 1030, 128),
            (64, 32, 512, 128, 96),
        ],
        sim=[(2, 32, 16, 45, 128), (1, 32, 80, 40, 64), (2, 20, 16, 100, 96), (8, 16, 12, 48, 96)],
    )
    production = points(
        "queries query_len docs doc_len width",
        full=[
            (8, 64, 2048, 300, 128),
            (128, 32, 256, 220, 64),
            (1, 16, 50000, 100, 128),
            (2, 48, 500, 2048, 128),
        ],
        sim=[(2, 64, 8, 75, 64), (6, 32, 8, 55, 64), (1, 16, 100, 25, 128), (1, 48, 4, 256, 128)],
    )
    adversarial = (
        {"queries": 3, "query_len": 1, "docs": 2, "doc_len": 1, "width": 16},
        {"queries": 2, "query_len": 17, "docs": 5, "doc_len": 35, "width": 48},
    )
    distributions = ("normal", "uniform", "sparse", "structured")

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws tokens by the distribution over the root of the width, and lengths."""
        queries, query_len, docs, doc_len, width = (workload.dims[a.name] for a in self.axes)
        kind = workload.distribution
        query = draw((queries, query_len, width), torch.float32, kind, generator)
        doc = draw((docs, doc_len, width), torch.float32, kind, generator)
        return {
            "query": query.half(),
            "doc": (doc * width**-0.5).half(),
            "length": torch.randint(1, doc_len + 1, (docs,), generator=generator).int(),
        }

    def oracle(
        self, query: torch.Tensor, doc: torch.Tensor, length: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """Document by document, in fp64."""
        out = [
            (query.double() @ tokens[:count].double().mT).amax(2).sum(1)
            for tokens, count in zip(doc, length.tolist(), strict=True)
        ]
        return (torch.stack(out, dim=1),)

    def reference(
        self, query: torch.Tensor, doc: torch.Tensor, length: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """One product for each query, in float32, masked beyond the lengths."""
        place = torch.arange(doc.shape[1], device=doc.device)
        beyond = (place >= length[:, None])[:, None, :]
        wide = doc.float().mT
        out = [
            torch.matmul(tokens.float(), wide).masked_fill(beyond, float("-inf")).amax(2).sum(1)
            for tokens in query
        ]
        return (torch.stack(out),)

    def yardstick(
        self, query: torch.Tensor, doc: torch.Tensor, length: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """The reference, products term by term, and those of the GPU's matrix units."""
        place = torch.arange(doc.shape[1], device=doc.device)
        beyond, flat = (place >= length[:, None])[:, None, :], doc.flatten(0, 1).mT
        scores = len(query) * len(doc)
        answers = [[row] for row in self.reference(query, doc, length)[0]]
        for tokens, of_query in zip(query, answers, strict=True):
            products = products_in_order(tokens.float(), flat.float(), scores)
            for part in (*products, *products_by_matrix_units(tokens, flat)):
                by_doc = part.unflatten(1, doc.shape[:2]).movedim(1, 0)
                of_query.append(by_doc.masked_fill(beyond, float("-inf")).amax(2).sum(1))
        honest = [torch.stack(row) for row in zip(*answers, strict=True)]
        return (farthest(self.oracle(query, doc, length)[0], honest),)

    def bytes(self, dims: Dims) -> int:
        """Reads the queries, the lengths and one token of each document; writes the scores."""
        queries, query_len, docs, _, width = (dims[axis.name] for axis in self.axes)
        return 2 * width * (queries * query_len + docs) + 4 * docs + 4 * queries * docs

    def flops(self, dims: Dims) -> int:
        """A product of each query token with one token of each document, the least there is."""
        queries, query_len, docs, _, width = (dims[axis.name] for axis in self.axes)
        return 2 * queries * query_len * docs * width


PROBLEM = Maxsim()
