"""The problem: an operation with an oracle, a space of workloads and a cost, free of language."""

from __future__ import annotations

import inspect
import math
import re
import sys
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch

from kernel_gym.tasks.names import KERNEL_FILES
from kernel_gym.tasks.shapes import shape_of
from kernel_gym.tasks.workload import Workload

Value = torch.Tensor | int | float
"""One argument of a call: a CPU tensor, or a scalar."""

CATEGORIES = (
    "Activation",
    "Attention",
    "Convolution",
    "Fusion",
    "Index",
    "LinearAlgebra",
    "Loss",
    "Math",
    "MatMul",
    "Normalization",
    "Optimizer",
    "Pooling",
    "Quantization",
    "Random-and-layout",
    "Reduce-and-scan",
)

_SHARED = "kernel_gym.tasks.shared."


class Scale(StrEnum):
    """How large workloads are: real model shapes for a GPU, small twins for the simulator."""

    FULL = "full"
    SIM = "sim"


class Check(StrEnum):
    """How an output is compared with the oracle's."""

    CLOSE = "close"
    """Two-legged row tolerance of the evaluation protocol (rule 7)."""
    EXACT = "exact"
    """Equal, element by element."""
    CUSTOM = "custom"
    """By :meth:`Problem.mismatches`: indices that may tie, generators."""


@dataclass(frozen=True)
class TensorArg:
    """A tensor input. `in_place` says that the operation writes it.

    `shape` are its sizes in terms of the problem's axes, see `kernel_gym/tasks/shapes.py`; words
    where they depend on values.
    """

    name: str
    dtype: torch.dtype
    in_place: bool = False
    shape: str = ""


@dataclass(frozen=True)
class ScalarArg:
    """A scalar input: `type` is int (passed to C as int64_t) or float (as float)."""

    name: str
    type: type


@dataclass(frozen=True)
class Output:
    """A tensor that the candidate returns; `shape` as for inputs."""

    name: str
    dtype: torch.dtype
    check: Check = Check.CLOSE
    shape: str = ""


@dataclass(frozen=True)
class Axis:
    """A dimension of the workload space, `low <= value <= high`, a multiple of `multiple`."""

    name: str
    low: int
    high: int
    multiple: int = 1


Dims = Mapping[str, int]
"""The size of each axis."""


def points(
    names: str, *, full: Sequence[tuple[int, ...]], sim: Sequence[tuple[int, ...]]
) -> Mapping[Scale, tuple[Dims, ...]]:
    """States dimensions by scale as rows of a table whose head is `names`, e.g. "rows cols"."""
    head = names.split()
    table = {Scale.FULL: full, Scale.SIM: sim}
    return MappingProxyType(
        {
            scale: tuple(MappingProxyType(dict(zip(head, row, strict=True))) for row in rows)
            for scale, rows in table.items()
        }
    )


class Problem(ABC):
    """What to compute, on which inputs, and what the least cost of it is.

    The docstring of a subclass defines its operation: shapes, dtypes and special cases.

    Subclasses are stateless: one instance, `PROBLEM`, in `tasks/problems/<name>/problem.py`.
    """

    name: str
    summary: str
    category: str
    level: int
    tags: tuple[str, ...] = ()
    source: str
    """Where the train shapes come from: a model or a library."""

    args: tuple[TensorArg | ScalarArg, ...]
    outputs: tuple[Output, ...]
    axes: tuple[Axis, ...]
    train: Mapping[Scale, Sequence[Dims]]
    """Train dimensions by scale, first the most typical one."""
    production: Mapping[Scale, Sequence[Dims]]
    """Further real model shapes (or their twins) from which unseen workloads are drawn."""
    adversarial: Sequence[Dims]
    """Tiny sizes, checked under every distribution and never timed; `adversarial_workloads` adds
    others."""
    distributions: tuple[str, ...] = ("normal", "offset", "tiny", "large")
    """Legal distributions of the data; no more than there are train workloads at any scale."""
    exchangeable: bool = True
    """Whether an input stays legal when elements of one floating tensor change places; not so for
    triangular or positive definite matrices, for instance."""
    strided: bool = True
    """Whether tensor inputs may be non-contiguous views (Triton modes only)."""

    def __eq__(self, other: object) -> bool:
        """Two instances of one class are the same problem, also after pickling."""
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self).__qualname__)

    def legal(self, dims: Dims) -> bool:
        """Whether the dimensions fit each axis; override to add constraints between axes."""
        return all(
            axis.low <= dims[axis.name] <= axis.high and dims[axis.name] % axis.multiple == 0
            for axis in self.axes
        )

    def elements(self, dims: Dims) -> int:
        """Size measure by which drawn workloads are kept within the budget of a scale.

        The product of all axes, unless overridden.
        """
        return math.prod(dims[axis.name] for axis in self.axes)

    @abstractmethod
    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws the arguments, contiguous CPU tensors and scalars, in the order of `args`."""

    def output_shapes(self, dims: Dims) -> dict[str, tuple[int, ...]]:
        """Shape of each output, as its `shape` says."""
        return {output.name: shape_of(output.shape, dims) for output in self.outputs}

    @abstractmethod
    def oracle(self, *args: Any, **inputs: Any) -> tuple[torch.Tensor, ...]:
        """The answer in fp64 (integers for index outputs) from fp64 copies of the inputs.

        Inputs come by name. The `*args` only let subclasses name their parameters.
        """

    @abstractmethod
    def reference(self, *args: Any, **inputs: Any) -> tuple[torch.Tensor, ...]:
        """Plain PyTorch in the task's dtype: the PyTorch baseline and the error yardstick."""

    def bytes(self, dims: Dims) -> int:
        """Least bytes any implementation moves.

        All inputs read once and all outputs written once, unless overridden.
        """
        return sum(math.prod(shape_of(t.shape, dims)) * t.dtype.itemsize for t in self.tensors)

    @abstractmethod
    def flops(self, dims: Dims) -> int:
        """Least floating-point operations of any implementation."""

    def c_sizes(self, dims: Dims) -> dict[str, int]:
        """The int64 sizes that a HIP launcher takes after its outputs: axes that no argument is."""
        scalars = {arg.name for arg in self.args if isinstance(arg, ScalarArg)}
        return {axis.name: dims[axis.name] for axis in self.axes if axis.name not in scalars}

    @property
    def definition(self) -> str:
        """What is computed, to the letter: the class's docstring, which prompts show."""
        return inspect.getdoc(type(self)) or ""

    @property
    def tensors(self) -> tuple[TensorArg | Output, ...]:
        """All tensors that go in or come out."""
        inputs = (arg for arg in self.args if isinstance(arg, TensorArg))
        return (*inputs, *self.outputs)

    @property
    def dtypes(self) -> frozenset[torch.dtype]:
        """The types of these tensors."""
        return frozenset(tensor.dtype for tensor in self.tensors)

    def mismatches(
        self, name: str, found: torch.Tensor, inputs: Mapping[str, Value], expected: torch.Tensor
    ) -> torch.Tensor:
        """Boolean mask of the wrong elements of an output whose check is CUSTOM."""
        raise TypeError(f"{self.name}: output {name!r} has no custom check")

    @property
    def entry(self) -> str:
        """Name of the function that a candidate exports."""
        return self.name

    @property
    def folder(self) -> Path | None:
        """The folder that holds the problem's files; None where it has none."""
        file = sys.modules[type(self).__module__].__file__
        return Path(file).parent if file else None

    def kernel(self, language: str) -> str | None:
        """Text of the start kernel in "triton" or "hip"; None where there is none."""
        path = self.folder / KERNEL_FILES[language] if self.folder else None
        return path.read_text(encoding="utf-8") if path and path.is_file() else None

    def reference_source(self) -> str:
        """Text of `reference` as a free-standing function; it uses torch and nothing else."""
        text = textwrap.dedent(inspect.getsource(type(self).reference))
        text = re.sub(r"def reference\(\s*self,\s*", f"def {self.entry}(", text, count=1)
        functional = "import torch.nn.functional as F\n" if "F." in text else ""
        return f"import torch\n{functional}\n\n{text}"

    def content(self) -> Iterator[str]:
        """The texts that decide what the problem is: its statement and its kernels.

        To the statement belong the classes that it derives from and what it takes from
        `tasks/shared/`.
        """
        for module in self._modules():
            yield inspect.getsource(sys.modules[module])
        yield from filter(None, map(self.kernel, KERNEL_FILES))

    def _modules(self) -> list[str]:
        """Names of the modules that state it: those of its classes, and shared ones they use."""
        line = type(self).__mro__
        own = [kind.__module__ for kind in line[: line.index(Problem)]]
        values = [value for name in own for value in vars(sys.modules[name]).values()]
        used = {str(getattr(value, "__module__", "")) for value in values}
        return [*dict.fromkeys(own), *sorted(name for name in used if name.startswith(_SHARED))]
