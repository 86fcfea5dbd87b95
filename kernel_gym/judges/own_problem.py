"""A problem of the corpus as a problem of kernel-gym, so that our own judge can be measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from kernel_gym.judges.corpus import FOLDER, CorpusProblem
from kernel_gym.tasks.distributions import draw
from kernel_gym.tasks.names import Mode
from kernel_gym.tasks.problem import Axis, Check, Dims, Output, Problem, TensorArg, Value, points
from kernel_gym.tasks.task import Task
from kernel_gym.tasks.workload import Workload

MAX_MAGNITUDE = 30.0
"""The largest legal magnitude of the corpus."""
WITH_NAN = "heavy_tail"
"""The distribution with one NaN: the corpus allows NaN, and the menu of distributions has none."""
SIZES = [(64, 256), (32, 512), (128, 128), (16, 1024), (48, 300)]


class OwnProblem(Problem):
    """A function of float32 tensors of two dimensions.

    Args:
        problem: The problem of the corpus.
        kernel: A right kernel that candidates are timed against; without it eager PyTorch is.
    """

    category = "Math"
    level = 1
    source = "the corpus for judges"
    domain = "Magnitudes are at most 30. NaN is legal and gives what the definition gives."
    axes = (Axis("rows", 1, 1 << 16), Axis("cols", 1, 1 << 12))
    train = points("rows cols", full=SIZES, sim=SIZES)
    production = points("rows cols", full=[(96, 384), (20, 640)], sim=[(96, 384), (20, 640)])
    adversarial = ({"rows": 3, "cols": 7},)
    distributions = ("normal", "wide", "tiny", "negative", WITH_NAN)

    def __init__(self, problem: CorpusProblem, kernel: str | None = None) -> None:
        self._problem, self._kernel = problem, kernel
        self.name = f"corpus_{problem.name}"
        self.summary = problem.library
        self.args = tuple(
            TensorArg(name, torch.float32, shape="rows, cols") for name in problem.arguments
        )
        self.outputs = (Output("y", torch.float32, Check.CUSTOM, "rows, cols"),)
        names: dict[str, Any] = {"torch": torch}
        exec(self.reference_source(), names)  # the corpus' own text
        self._function: Callable[..., tuple[torch.Tensor, ...]] = names[self.entry]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OwnProblem) and list(self.content()) == list(other.content())

    def __hash__(self) -> int:
        return hash(tuple(self.content()))

    @property
    def entry(self) -> str:
        """The function of a candidate."""
        return "run"

    @property
    def folder(self) -> Path:
        """The folder with the ranges."""
        return FOLDER / "own"

    @property
    def definition(self) -> str:
        """The definition as an expression."""
        return self._problem.library

    def kernel(self, language: str) -> str | None:
        """Returns the kernel that candidates are timed against."""
        return self._kernel if language == "triton" else None

    def content(self) -> Iterator[str]:
        """Yields the definition and the kernel."""
        yield self._problem.source
        yield self._kernel or ""

    def reference_source(self) -> str:
        """Returns a module with the definition under the name of the entry."""
        names = ", ".join(self._problem.arguments)
        body = f"def run({names}):\n    return ({self._problem.library},)\n"
        return f"import math\n\nimport torch\n\n\n{body}"

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws float32[rows, cols] for each argument, within the legal magnitudes."""
        shape = workload.dims["rows"], workload.dims["cols"]
        values: dict[str, Value] = {}
        for arg in self.args:
            value = draw(shape, torch.float32, workload.distribution, generator)
            value = value.clamp(-MAX_MAGNITUDE, MAX_MAGNITUDE)
            if workload.distribution == WITH_NAN and not values:
                value[shape[0] // 2, shape[1] // 2] = torch.nan
            values[arg.name] = value
        return values

    def oracle(self, *args: object, **inputs: Any) -> tuple[torch.Tensor, ...]:
        """The definition in float64."""
        return self._function(**{name: value.double() for name, value in inputs.items()})

    def reference(self, *args: object, **inputs: object) -> tuple[torch.Tensor, ...]:
        """The definition in float32."""
        return self._function(**inputs)

    def mismatches(
        self, name: str, found: torch.Tensor, inputs: Mapping[str, Value], expected: torch.Tensor
    ) -> torch.Tensor:
        """Returns where a result is outside the tolerance of the problem; NaN equals NaN.

        That of rule 7 is tighter for results near zero.
        """
        allowed = self._problem.absolute + self._problem.relative * expected.abs()
        near = (found.double() - expected).abs() <= allowed
        return ~(near | (found.isnan() & expected.isnan()))

    def flops(self, dims: Dims) -> int:
        """One operation for each element."""
        return self.elements(dims)


def own_task(problem: CorpusProblem, kernel: str | None = None) -> Task:
    """Returns the task of a problem: against a kernel if there is one, else against PyTorch."""
    mode = Mode.TORCH2TRITON if kernel is None else Mode.TRITON2TRITON
    return Task(OwnProblem(problem, kernel), mode)
