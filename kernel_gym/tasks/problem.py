"""A problem: an operation with an oracle, a space of workloads and a cost, in no language."""

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

from kernel_gym.tasks.content import defining_texts
from kernel_gym.tasks.embedded import EXTRAS, embedded_kernel
from kernel_gym.tasks.names import GLUON_FILE, KERNEL_FILES, Mode
from kernel_gym.tasks.prompt_parts import PromptParts
from kernel_gym.tasks.shapes import shape_of
from kernel_gym.tasks.worker_reference import Dims, Value, WorkerReference
from kernel_gym.tasks.workload import Split, Workload

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


class Scale(StrEnum):
    """How large workloads are: real model shapes for a GPU, or small twins for the simulator."""

    FULL = "full"
    SIM = "sim"


class Check(StrEnum):
    """How an output is compared with the output of the oracle."""

    CLOSE = "close"
    """The row tolerance of rule 7 of the evaluation protocol (docs/protocol.md)."""
    EXACT = "exact"
    """Every element is equal."""
    CUSTOM = "custom"
    """:meth:`Problem.mismatches` decides, for outputs such as indices of ties or random numbers."""


@dataclass(frozen=True)
class TensorArg:
    """A tensor input. `in_place` means that the operation writes to it.

    `shape` gives its sizes in terms of the problem's axes, see `kernel_gym/tasks/shapes.py`. If the
    sizes depend on values, it is a description in words.
    """

    name: str
    dtype: torch.dtype
    in_place: bool = False
    shape: str = ""


@dataclass(frozen=True)
class ScalarArg:
    """A scalar input. `type` is int (int64_t in C) or float (float in C).

    `values` are legal values that change the answer; any value between them is legal, too, unless
    the scalar is not `ranged`. Train workloads have one of them. Hidden ones draw from the range
    (`kernel_gym.tasks.scalar_draws`). A scalar without values is an axis, or `Problem.inputs` draws
    it.
    """

    name: str
    type: type
    values: tuple[int | float, ...] = ()
    ranged: bool = True


@dataclass(frozen=True)
class Output:
    """A tensor that the candidate returns. `shape` has the form of an input's shape.

    `place` names the in-place input that holds the output. The candidate returns that tensor
    itself: a copy of it is refused, since the caller keeps the input.
    """

    name: str
    dtype: torch.dtype
    check: Check = Check.CLOSE
    shape: str = ""
    place: str = ""


@dataclass(frozen=True)
class Axis:
    """A dimension of the workload space: a multiple of `multiple` from `low` to `high`."""

    name: str
    low: int
    high: int
    multiple: int = 1


def points(
    names: str, *, full: Sequence[tuple[int, ...]], sim: Sequence[tuple[int, ...]]
) -> Mapping[Scale, tuple[Dims, ...]]:
    """Returns dimensions by scale, from rows of a table with the head `names` ("rows cols")."""
    head = names.split()
    table = {Scale.FULL: full, Scale.SIM: sim}
    return MappingProxyType(
        {
            scale: tuple(MappingProxyType(dict(zip(head, row, strict=True))) for row in rows)
            for scale, rows in table.items()
        }
    )


class Problem(ABC):
    """The operation to compute, its inputs, and the least cost of any implementation.

    The docstring of a subclass defines its operation: shapes, dtypes and special cases. Prompts
    show it.

    Subclasses are stateless. Each has one instance, `PROBLEM`, in
    `tasks/problems/<name>/problem.py`.
    """

    name: str
    summary: str
    category: str
    level: int
    tags: tuple[str, ...] = ()
    source: str
    """The model or library that the train shapes come from."""
    suite: str = ""
    """The suite that others wrote and the problem was imported from, or empty."""

    domain: str = "All inputs are finite: NaN and infinities are not legal."
    """Which values are legal, in sentences that prompts show: NaN, empty rows, repeated indices."""
    rounding: str = "Compute in float32 and round each output once, at the end."
    """Where results are rounded, in sentences that prompts show if an output is a narrow float."""

    fair_reference: bool = True
    """Whether eager PyTorch is a fair baseline. It is not where the reference is a Python loop or
    spells out a random generator: there the start kernel is the baseline in every mode."""

    args: tuple[TensorArg | ScalarArg, ...]
    parameters: frozenset[str] = frozenset()
    """The arguments that are parameters or buffers of a module, which no caller chooses."""
    outputs: tuple[Output, ...]
    axes: tuple[Axis, ...]
    train: Mapping[Scale, Sequence[Dims]]
    """Train dimensions by scale. The first one is the most typical."""
    production: Mapping[Scale, Sequence[Dims]]
    """More real model shapes (or their twins), from which unseen workloads are drawn."""
    adversarial: Sequence[Dims]
    """Tiny sizes that are checked under every distribution and never timed. The function
    `adversarial_workloads` adds more sizes."""
    distributions: tuple[str, ...] = ("normal", "offset", "tiny", "large")
    """Legal distributions of the data, at most as many as train workloads of any scale. The train
    workload number i uses number i, so the order of this list and of `train` matters."""
    tiny_inputs: bool = True
    """Whether one adversarial workload has values of 1e-3, although they are not in that list.
    There a kernel that takes small rows for zeros is wrong. Not where answers underflow."""
    special_values: bool = True
    """Whether adversarial workloads have special values, up to the ranges that it states
    (`kernel_gym/tasks/ranges.py`). Not where a program found the legal distributions by trial."""
    exchangeable: bool = True
    """Whether an input stays legal if elements of one floating-point tensor are permuted.
    Triangular and positive definite matrices, for example, do not."""
    strided: bool = True
    """Whether tensor inputs may be non-contiguous views (Triton modes only)."""
    startless: bool = False
    """Whether there are tasks that start from PyTorch in languages without a start kernel."""
    own_layout: bool = False
    """Whether `inputs` decides on the layout of tensors in memory, and no workload does."""
    margin: bool = False
    """Whether accesses just outside an allocation are let through, as on a real GPU: the own kernel
    of an imported suite makes some."""
    recorded: bool = False
    """Whether it is made of recorded calls (`kernel_gym/imports/recorded`): a reference worker runs
    the suite's own code for oracle and baseline."""

    rewritten: bool = False
    """Whether its PyTorch is somebody's, which the project wrote again as a list of operators."""

    claimed: bool = False
    """Whether its kernels come from somebody who may gain by them: the baseline of a claim. They
    run as confined as a candidate."""

    def __eq__(self, other: object) -> bool:
        """Instances of one class are the same problem, also after pickling."""
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self).__qualname__)

    def legal(self, dims: Dims) -> bool:
        """Whether the dimensions fit each axis. Override it to add constraints between axes."""
        return all(
            axis.low <= dims[axis.name] <= axis.high and dims[axis.name] % axis.multiple == 0
            for axis in self.axes
        )

    def elements(self, dims: Dims) -> int:
        """Returns the size that is compared with the budget when workloads are drawn.

        It is the product of all axes, unless a subclass overrides it.
        """
        return math.prod(dims[axis.name] for axis in self.axes)

    @property
    def declared(self) -> tuple[ScalarArg, ...]:
        """The scalar arguments with declared values."""
        return tuple(arg for arg in self.args if isinstance(arg, ScalarArg) and arg.values)

    def scalars(self, workload: Workload) -> dict[str, int | float]:
        """Returns the declared scalars of a workload, in the order of `args`.

        Floats are rounded to float32, as kernels receive them. A workload that states no value
        has the first one.
        """
        chosen = {a.name: workload.scalars.get(a.name, a.values[0]) for a in self.declared}
        kinds = {arg.name: arg.type for arg in self.declared}
        return {
            name: torch.tensor(value, dtype=torch.float32, device="cpu").item()
            if kinds[name] is float
            else int(value)
            for name, value in chosen.items()
        }

    @abstractmethod
    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws the arguments: contiguous CPU tensors and scalars, in the order of `args`."""

    def output_shapes(self, dims: Dims) -> dict[str, tuple[int, ...]]:
        """Returns the shape of each output, from its `shape` text."""
        return {output.name: shape_of(output.shape, dims) for output in self.outputs}

    @abstractmethod
    def oracle(self, *args: Any, **inputs: Any) -> tuple[torch.Tensor, ...]:
        """Returns the right answer in fp64 (integers for index outputs), from fp64 inputs.

        Inputs are passed by name. `*args` is only there so that subclasses may name parameters.
        """

    @abstractmethod
    def reference(self, *args: Any, **inputs: Any) -> tuple[torch.Tensor, ...]:
        """Runs plain PyTorch in the task's dtype: the PyTorch baseline and the error yardstick."""

    def yardstick(self, *args: Any, **inputs: Any) -> tuple[torch.Tensor, ...]:
        """Returns the honest answer with the largest error, which sets the tolerance.

        It is the reference's, unless common libraries round earlier than the reference does.
        """
        return self.reference(*args, **inputs)

    def outputs_at(self, dims: Dims) -> tuple[Output, ...]:
        """Returns the outputs of a call with such dimensions; the same for all, as a rule."""
        return self.outputs

    def dtypes_at(self, dims: Dims) -> frozenset[torch.dtype]:
        """Returns the dtypes of all tensors of a call; the fastest one bounds its rate.

        A product of bfloat16 matrices has the rate of bfloat16 also where its result is float32.
        """
        inputs = {arg.dtype for arg in self.args if isinstance(arg, TensorArg)}
        return frozenset(inputs | {output.dtype for output in self.outputs_at(dims)})

    def stated_workloads(self, split: Split) -> list[Workload] | None:
        """Returns the only workloads of a split, or None if they are drawn from the axes."""
        return None

    def assembled(self, source: str) -> str:
        """Returns what a worker loads for a candidate's source."""
        return source

    def unassembled(self, text: str) -> str:
        """Returns the part of an assembled text that is the candidate's own."""
        return text

    @property
    def worker_reference(self) -> WorkerReference | None:
        """The reference that a confined worker runs; None where the judge runs `reference`."""
        return None

    @property
    def own_operators(self) -> frozenset[str]:
        """The operators of PyTorch that compute and that a suite's own code runs, by name."""
        return frozenset()

    def prompt_parts(self, mode: Mode) -> PromptParts | None:
        """Returns the parts of prompts that the problem states itself; None if it states none."""
        return None

    @property
    def implementation(self) -> str:
        """The own code of an imported suite, or empty."""
        return ""

    def bytes(self, dims: Dims) -> int:
        """Returns the least number of bytes that any implementation moves.

        By default every input is read once and every output is written once.
        """
        return sum(math.prod(shape_of(t.shape, dims)) * t.dtype.itemsize for t in self.tensors)

    @abstractmethod
    def flops(self, dims: Dims) -> int:
        """Returns the least number of floating-point operations of any implementation."""

    def c_sizes(self, dims: Dims) -> dict[str, int]:
        """Returns the int64 sizes that a HIP launcher takes last: axes that are not in `args`."""
        scalars = {arg.name for arg in self.args if isinstance(arg, ScalarArg)}
        return {axis.name: dims[axis.name] for axis in self.axes if axis.name not in scalars}

    @property
    def definition(self) -> str:
        """The exact definition: the docstring of the class, which prompts show."""
        return inspect.getdoc(type(self)) or ""

    @property
    def tensors(self) -> tuple[TensorArg | Output, ...]:
        """All input and output tensors."""
        inputs = (arg for arg in self.args if isinstance(arg, TensorArg))
        return (*inputs, *self.outputs)

    @property
    def dtypes(self) -> frozenset[torch.dtype]:
        """The dtypes of all input and output tensors."""
        return frozenset(tensor.dtype for tensor in self.tensors)

    def mismatches(
        self, name: str, found: torch.Tensor, inputs: Mapping[str, Value], expected: torch.Tensor
    ) -> torch.Tensor:
        """Returns a boolean mask of the wrong elements of an output with the check CUSTOM."""
        raise TypeError(f"{self.name}: output {name!r} has no custom check")

    @property
    def entry(self) -> str:
        """Name of the function that a candidate exports."""
        return self.name

    @property
    def folder(self) -> Path | None:
        """The folder of the problem's files, or None if it has no files."""
        file = sys.modules[type(self).__module__].__file__
        return Path(file).parent if file else None

    def kernel(self, language: str) -> str | None:
        """Returns the text of the start kernel in a language, or None if there is none.

        Args:
            language: "triton", "hip", or a package of `embedded.EXTRAS`.
        """
        if language in EXTRAS:
            return embedded_kernel(language, self.name) if self.folder else None
        path = self.folder / KERNEL_FILES[language] if self.folder else None
        return path.read_text(encoding="utf-8") if path and path.is_file() else None

    @property
    def gluon_kernel(self) -> str | None:
        """The text of the kernel in Gluon, the explicit dialect of Triton, or None."""
        path = self.folder / GLUON_FILE if self.folder else None
        return path.read_text(encoding="utf-8") if path and path.is_file() else None

    def reference_source(self) -> str:
        """Returns the text of `reference` as a module-level function that uses only torch."""
        text = textwrap.dedent(inspect.getsource(type(self).reference))
        text = re.sub(r"def reference\(\s*self,\s*", f"def {self.entry}(", text, count=1)
        functional = "import torch.nn.functional as F\n" if "F." in text else ""
        return f"import torch\n{functional}\n\n{text}"

    def content(self) -> Iterator[str]:
        """Yields the texts that define the problem: the files of its folder, and what they use.

        Each file stands after its name. Modules of base classes and modules of `tasks/shared/` that
        the problem uses follow.
        """
        line = type(self).__mro__
        own = [kind.__module__ for kind in line[: line.index(Problem)]]
        yield from defining_texts(self.folder, own)
