"""The problem: an operation with an oracle, a space of workloads and a cost, free of language."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

import torch

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
    """A tensor input. `in_place` says that the operation writes it."""

    name: str
    dtype: torch.dtype
    in_place: bool = False


@dataclass(frozen=True)
class ScalarArg:
    """A scalar input: `type` is int (passed to C as int64_t) or float (as float)."""

    name: str
    type: type


@dataclass(frozen=True)
class Output:
    """A tensor that the candidate returns."""

    name: str
    dtype: torch.dtype
    check: Check = Check.CLOSE


@dataclass(frozen=True)
class Axis:
    """A dimension of the workload space, `low <= value <= high`, a multiple of `multiple`."""

    name: str
    low: int
    high: int
    multiple: int = 1


class Problem(ABC):
    """What to compute, on which inputs, and what the least cost of it is.

    Subclasses are stateless: one instance, `PROBLEM`, in `tasks/problems/<name>/problem.py`.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    category: ClassVar[str]
    level: ClassVar[int]
    tags: ClassVar[tuple[str, ...]] = ()
    source: ClassVar[str]
    """Where the train shapes come from: a model or a library."""

    args: ClassVar[tuple[TensorArg | ScalarArg, ...]]
    outputs: ClassVar[tuple[Output, ...]]
    axes: ClassVar[tuple[Axis, ...]]
    train: ClassVar[Mapping[Scale, Sequence[Mapping[str, int]]]]
    """Train dimensions by scale, first the most typical one."""
    production: ClassVar[Mapping[Scale, Sequence[Mapping[str, int]]]]
    """Further real model shapes (or their twins) from which unseen workloads are drawn."""
    adversarial: ClassVar[Sequence[Mapping[str, int]]]
    """Odd sizes; checked, never timed."""
    distributions: ClassVar[tuple[str, ...]] = ("normal", "uniform", "offset", "tiny", "large")
    strided: ClassVar[bool] = True
    """Whether tensor inputs may be non-contiguous views (Triton modes only)."""

    def legal(self, dims: Mapping[str, int]) -> bool:
        """Whether the dimensions fit each axis; override to add constraints between axes."""
        return all(
            axis.low <= dims[axis.name] <= axis.high and dims[axis.name] % axis.multiple == 0
            for axis in self.axes
        )

    @abstractmethod
    def elements(self, dims: Mapping[str, int]) -> int:
        """Size measure by which drawn workloads are kept within the budget of a scale."""

    @abstractmethod
    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws the arguments, contiguous CPU tensors and scalars, in the order of `args`."""

    @abstractmethod
    def output_shapes(self, dims: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
        """Shape of each output."""

    @abstractmethod
    def oracle(self, **inputs: Any) -> tuple[torch.Tensor, ...]:
        """The answer in fp64 (integers for index outputs) from fp64 copies of the inputs."""

    @abstractmethod
    def reference(self, **inputs: Any) -> tuple[torch.Tensor, ...]:
        """Plain PyTorch in the task's dtype: the PyTorch baseline and the error yardstick."""

    @abstractmethod
    def bytes(self, dims: Mapping[str, int]) -> int:
        """Least bytes any implementation moves: inputs read once, outputs written once."""

    @abstractmethod
    def flops(self, dims: Mapping[str, int]) -> int:
        """Least floating-point operations of any implementation."""

    def c_sizes(self, dims: Mapping[str, int]) -> dict[str, int]:
        """The int64 sizes that a HIP launcher takes after its pointers, in order."""
        return {axis.name: dims[axis.name] for axis in self.axes}

    def mismatches(
        self, name: str, found: torch.Tensor, inputs: Mapping[str, Value], expected: torch.Tensor
    ) -> torch.Tensor:
        """Boolean mask of the wrong elements of an output whose check is CUSTOM."""
        raise TypeError(f"{self.name}: output {name!r} has no custom check")
