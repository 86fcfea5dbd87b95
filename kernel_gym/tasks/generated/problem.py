"""Generated problems: a chain of fused operators for every seed.

`generated:seed=123,depth=4` can be given wherever a task id is expected. Reference, oracle and
start kernel are generated from the graph (`graphs.py`, `kernels.py`). Different seeds of a depth
give different graphs. Seeds are split into train and test by their remainder, for studies of
generalisation.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from kernel_gym.tasks.distributions import draw
from kernel_gym.tasks.generated.graphs import (
    DEPTHS,
    Extra,
    GeneratedGraph,
    OperatorKind,
    OperatorStep,
    graph,
)
from kernel_gym.tasks.generated.kernels import (
    ENTRY,
    describe,
    extra_names,
    steps_text,
    torch_source,
    triton_source,
)
from kernel_gym.tasks.models import models
from kernel_gym.tasks.names import PREFIX
from kernel_gym.tasks.problem import Axis, Dims, Output, Problem, Scale, TensorArg, Value, points
from kernel_gym.tasks.workload import Workload

_NAME = re.compile(r"generated:seed=(\d+),depth=(\d+)")
_TRAIN = 4
"""Number of train workloads, and of production workloads."""
_TEST_SHARE = 5
"""The last of this many consecutive seeds belongs to the test split."""

_SHAPES = {
    Extra.MATRIX: "rows, {w}",
    Extra.WEIGHT: "{w}",
    Extra.BIAS: "{w}",
    Extra.WEIGHT_BIAS: "{w}",
    Extra.ROW: "rows",
    Extra.FACTOR: "{v}, {w}",
    Extra.LINEAR: "{w}, {v}",
    Extra.TAPS: "4, {w}",
    Extra.ROW_INDEX: "rows",
}


def generated_id(seed: int, depth: int) -> str:
    """Returns the task id of a seed."""
    return f"{PREFIX}seed={seed},depth={depth}"


def seeds(split: str) -> Iterator[int]:
    """Yields the seeds of a split, "train" or "test", in order, without end."""
    if split not in ("train", "test"):
        raise ValueError(f"split: found {split!r}, expected 'train' or 'test'")
    seed = 0
    while True:
        if (seed % _TEST_SHARE == _TEST_SHARE - 1) == (split == "test"):
            yield seed
        seed += 1


CACHED = 4096
"""Generated problems, tasks and graphs that a process keeps. Requests to a service name them, and
there is no end of names."""


@lru_cache(maxsize=CACHED)
def generated_problem(name: str) -> GeneratedProblem:
    """Returns the problem of a name such as `generated:seed=123,depth=4`.

    Raises:
        ValueError: The name is malformed, or there is no such graph.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        depths = f"{DEPTHS.start}..{DEPTHS.stop - 1}"
        raise ValueError(f"expected generated:seed=<number>,depth=<{depths}>")
    return GeneratedProblem(int(match.group(1)), int(match.group(2)))


class GeneratedProblem(Problem):
    """A chain of operators on a matrix x[rows, cols]. The width after a product is `inner`."""

    category = "Fusion"
    tags = ("generated", "memory-bound")
    source = "hidden sizes of public models, see kernel_gym/tasks/models.toml"
    distributions = ("normal", "uniform", "sparse", "structured")
    tiny_inputs = False
    special_values = False

    def __init__(self, seed: int, depth: int) -> None:
        self.graph: GeneratedGraph = graph(seed, depth)
        self.name = generated_id(seed, depth)
        self.summary = describe(self.graph)
        self.level = min(5, depth - 1)
        self.dtype: torch.dtype = getattr(torch, self.graph.dtype)
        self.args = (TensorArg("x", self.dtype, shape="rows, cols"), *self._extra_arguments())
        shape = f"rows, {self.graph.steps[-1].width}"
        self.outputs = (Output("out", self.dtype, shape=shape),)
        names = ("rows", "cols", "inner") if self._products else ("rows", "cols")
        high = {"rows": 1 << 17, "cols": 1 << 15, "inner": 1 << 15}
        self.axes = tuple(Axis(name, 2, high[name]) for name in names)
        self.adversarial = (dict(zip(names, (3, 5, 7), strict=False)),)
        rng = random.Random(self.graph.text)
        self.train, self.production = _sizes(names, rng)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GeneratedProblem) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> tuple[Callable[[str], GeneratedProblem], tuple[str]]:
        return generated_problem, (self.name,)

    @property
    def entry(self) -> str:
        """The name of the exported function, since the problem's name is no identifier."""
        return ENTRY

    @property
    def folder(self) -> Path | None:
        """None, because a generated problem has no files."""
        return None

    @property
    def definition(self) -> str:
        """The definition of each step."""
        return steps_text(self.graph)

    def kernel(self, language: str) -> str | None:
        """Returns the unfused Triton kernels, or None for HIP."""
        return triton_source(self.graph) if language == "triton" else None

    def reference_source(self) -> str:
        """Returns the text that `reference` runs."""
        return torch_source(self.graph)

    def content(self) -> Iterator[str]:
        """Yields the graph and sizes, and the kernel."""
        yield f"{self.graph.text} {[dict(d) for dims in self.train.values() for d in dims]}"
        yield triton_source(self.graph)

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws matrices by distribution, weights around 1, biases around 0, and legal indices."""
        dims = workload.dims
        shape = (dims["rows"], dims["cols"])
        values: dict[str, Value] = {"x": draw(shape, self.dtype, workload.distribution, generator)}
        for number, step in enumerate(self.graph.steps, 1):
            for name in extra_names(number, step):
                values[name] = self._draw(name, step, workload, generator)
        return values

    def oracle(self, **inputs: object) -> tuple[torch.Tensor, ...]:
        """Computes the graph in fp64 without rounding between steps."""
        return _compiled(torch_source(self.graph, exact=True))(**inputs)

    def reference(self, **inputs: object) -> tuple[torch.Tensor, ...]:
        """Computes the graph in float32, with operands of products rounded to the task's dtype."""
        return _compiled(torch_source(self.graph))(**inputs)

    def flops(self, dims: Dims) -> int:
        """Returns the FLOPs: per element of an operator's input or output, or per multiply-add."""
        total = 0
        for step in self.graph.steps:
            before, after = _width(step.width_in, dims), _width(step.width, dims)
            if step.op.kind is OperatorKind.MATMUL:
                total += 2 * dims["rows"] * before * after
            else:
                total += step.op.flops * dims["rows"] * max(before, after)
        return total

    @property
    def _products(self) -> bool:
        return any(step.op.kind is OperatorKind.MATMUL for step in self.graph.steps)

    def _extra_arguments(self) -> Iterator[TensorArg]:
        for number, step in enumerate(self.graph.steps, 1):
            index = step.op.extra is Extra.ROW_INDEX
            for name in extra_names(number, step):
                shape = _SHAPES[step.op.extra].format(w=step.width, v=step.width_in)
                yield TensorArg(name, torch.int64 if index else self.dtype, shape=shape)

    def _draw(
        self, name: str, step: OperatorStep, workload: Workload, generator: torch.Generator
    ) -> torch.Tensor:
        dims, extra = workload.dims, step.op.extra
        rows, width = dims["rows"], _width(step.width, dims)
        if extra is Extra.MATRIX:
            return draw((rows, width), self.dtype, workload.distribution, generator)
        if extra in (Extra.FACTOR, Extra.LINEAR):
            before = _width(step.width_in, dims)
            shape = (before, width) if extra is Extra.FACTOR else (width, before)
            factor = torch.randn(shape, generator=generator)
            return (factor * before**-0.5).to(self.dtype)
        if extra is Extra.TAPS:
            return (0.5 * torch.randn((4, width), generator=generator)).to(self.dtype)
        if extra is Extra.ROW_INDEX:
            return torch.randint(0, rows, (rows,), generator=generator)
        length = rows if extra is Extra.ROW else width
        around = 0.0 if name.startswith("b") else 1.0
        return (around + 0.3 * torch.randn(length, generator=generator)).to(self.dtype)


def _width(axis: str, dims: Dims) -> int:
    return 1 if axis == "1" else dims[axis]


@lru_cache(maxsize=CACHED)
def _compiled(source: str) -> Callable[..., tuple[torch.Tensor, ...]]:
    scope: dict[str, Any] = {"torch": torch, "F": F}
    exec(
        compile(source, f"<graph {hashlib.sha256(source.encode()).hexdigest()[:8]}>", "exec"), scope
    )
    return scope[ENTRY]


Sizes = Mapping[Scale, Sequence[Dims]]


def _sizes(names: tuple[str, ...], rng: random.Random) -> tuple[Sizes, Sizes]:
    """Draws train and production sizes: widths of public models, and small simulator twins."""
    hidden = sorted({m.dimensions["hidden"] for m in models().values() if "hidden" in m.dimensions})
    rows: tuple[int, ...]
    if "inner" in names:
        rows, widths = (64, 96, 128, 160), (128, 192, 256, 320, 384)
    else:
        rows, widths = (24, 32, 48, 64, 96), (512, 768, 1024, 1536, 2048)
    full = _distinct(rng, (1024, 2048, 4096, 8192), hidden, len(names) - 1)
    sim = _distinct(rng, rows, widths, len(names) - 1)
    head = " ".join(names)
    return (
        points(head, full=full[:_TRAIN], sim=sim[:_TRAIN]),
        points(head, full=full[_TRAIN:], sim=sim[_TRAIN:]),
    )


def _distinct(
    rng: random.Random, rows: Sequence[int], widths: Sequence[int], number: int
) -> list[tuple[int, ...]]:
    """Draws distinct sizes, for train and production together."""
    sizes: dict[tuple[int, ...], None] = {}
    while len(sizes) < 2 * _TRAIN:
        sizes[(rng.choice(rows), *rng.sample(widths, number))] = None
    return list(sizes)
