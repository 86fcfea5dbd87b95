"""Turns a statement into a problem, so that a claim passes through all gates of the evaluator."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch

from kernel_gym.referee.reference import ConfinedReference
from kernel_gym.referee.statement import ClaimError, InputPart, Statement
from kernel_gym.tasks.distributions import draw
from kernel_gym.tasks.problem import (
    Axis,
    Check,
    Dims,
    Output,
    Problem,
    ScalarArg,
    Scale,
    TensorArg,
    Value,
)
from kernel_gym.tasks.shapes import shape_of
from kernel_gym.tasks.workload import Workload

SIM_ELEMENTS = 1 << 20
"""Most elements of a workload on the simulator; larger claims are scaled down to it."""


class ClaimedProblem(Problem):
    """A problem of a statement and a PyTorch reference.

    Args:
        statement: The statement.
        reference: The text of a module that defines the entry in PyTorch. It runs in a confined
            process only, see :mod:`kernel_gym.referee.reference`.
        kernels: The baseline kernel by language.

    Raises:
        ClaimError: The reference cannot be used.
    """

    category = "Fusion"
    level = 1
    source = "a claim"
    claimed = True
    special_values = False

    def __init__(self, statement: Statement, reference: str, kernels: dict[str, str]) -> None:
        self.statement, self._reference_text, self._kernels = statement, reference, kernels
        self.name = f"{statement.entry}_{self._digest()}"
        self.summary = f"{statement.entry}, as the reference defines it"
        self.distributions = statement.distributions
        self.args = tuple(map(_argument, statement.input))
        self.outputs = tuple(
            Output(part.name, part.torch_dtype, _check(part.torch_dtype), part.shape)
            for part in statement.output
        )
        self.axes = tuple(Axis(name, *span) for name, span in statement.axes.items())
        full = tuple(MappingProxyType(dict(dims)) for dims in statement.shapes)
        small = tuple(dict.fromkeys(tuple(self._small(dims).items()) for dims in full))
        sim = tuple(MappingProxyType(dict(items)) for items in small)
        self.train = MappingProxyType({Scale.FULL: full, Scale.SIM: sim})
        self.production = MappingProxyType(
            {scale: self._further(dims) for scale, dims in self.train.items()}
        )
        self.adversarial = (self._tiny(),)
        self._require_small()
        self._reference = ConfinedReference(
            reference, statement.entry, statement.input, len(statement.output)
        )
        self._require_stated_outputs()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClaimedProblem) and list(self.content()) == list(other.content())

    def __hash__(self) -> int:
        return hash(tuple(self.content()))

    @property
    def entry(self) -> str:
        """The function that kernel, baseline and reference define."""
        return self.statement.entry

    @property
    def folder(self) -> Path | None:
        """None, because a claim has no folder of a problem."""
        return None

    @property
    def definition(self) -> str:
        """The reference."""
        return self._reference_text

    def judge_on(self, own: Sequence[str]) -> None:
        """Adds distributions to those of the claim. Those of the referee come first."""
        stated = (name for name in self.statement.distributions if name not in own)
        self.distributions = (*own, *stated)

    def kernel(self, language: str) -> str | None:
        """The baseline kernel in a language, or None."""
        return self._kernels.get(language)

    def reference_source(self) -> str:
        """The operators of the reference as a module, for processes that are not confined.

        Raises:
            ClaimError: They depend on the sizes in a way that is not understood.
        """
        return self._reference.text_for(self._varied())

    def content(self) -> Iterator[str]:
        """Yields statement, reference and baselines."""
        yield self.statement.model_dump_json()
        yield self._reference_text
        yield from self._kernels.values()

    def inputs(self, workload: Workload, generator: torch.Generator) -> dict[str, Value]:
        """Draws tensors by distribution; integers are drawn evenly below their bound."""
        return {
            part.name: _value(part, workload, generator) if part.value is None else part.value
            for part in self.statement.input
        }

    def oracle(self, *args: object, **inputs: Any) -> tuple[torch.Tensor, ...]:
        """The operators of the reference in fp64."""
        return self._reference.run(inputs, exact=True)

    def reference(self, *args: object, **inputs: Any) -> tuple[torch.Tensor, ...]:
        """The operators of the reference."""
        return self._reference.run(inputs)

    def flops(self, dims: Dims) -> int:
        """One operation for each element of an output: a bound that no claim can undercut."""
        return sum(math.prod(shape_of(out.shape, dims)) for out in self.outputs)

    def _small(self, dims: Dims) -> dict[str, int]:
        """Halves the largest axis until the workload fits the simulator."""
        small = dict(dims)
        while self._held(small) > SIM_ELEMENTS:
            able = [a for a in self.axes if small[a.name] // 2 >= max(a.low, a.multiple)]
            if not able:
                break
            axis = max(able, key=lambda a: small[a.name])
            half = small[axis.name] // 2
            small[axis.name] = max(axis.low, half - half % axis.multiple)
        return small

    def _held(self, dims: Dims) -> int:
        return sum(math.prod(shape_of(t.shape, dims)) for t in self.tensors)

    def _digest(self) -> str:
        """Distinguishes claims with the same entry, for caches of times and values."""
        return hashlib.sha256("\0".join(self.content()).encode()).hexdigest()[:8]

    def _require_small(self) -> None:
        """Refuses sizes whose data the judge could not hold."""
        for dims in (*self.train[Scale.SIM], *self.adversarial):
            sizes = [size for tensor in self.tensors for size in shape_of(tensor.shape, dims)]
            if min(sizes, default=0) < 0:
                raise ClaimError(f"axes: found a negative size at {dict(dims)}; raise the least "
                                 "legal sizes")  # fmt: skip
            if self._held(dims) > SIM_ELEMENTS:
                raise ClaimError(
                    f"axes: found {self._held(dims):,} elements at the smallest legal sizes "
                    f"{dict(dims)}, expected at most {SIM_ELEMENTS:,}: lower the least legal sizes"
                )

    def _require_stated_outputs(self) -> None:
        """Compares what the reference returns, without values, with the stated outputs."""
        dims = self.train[Scale.SIM][0]
        meta: dict[str, Value] = {}
        for part in self.statement.input:
            shape = shape_of(part.shape, dims)
            meta[part.name] = (
                torch.empty(shape, dtype=part.torch_dtype, device="meta")
                if part.value is None
                else part.value
            )
        for output, found in zip(self.outputs, self.reference(**meta), strict=True):
            expected = (output.dtype, shape_of(output.shape, dims))
            if (found.dtype, tuple(found.shape)) != expected:
                raise ClaimError(
                    f"reference: {output.name!r}: found {found.dtype} {tuple(found.shape)}, "
                    f"expected {expected[0]} {expected[1]} at {dict(dims)}"
                )

    def _varied(self) -> list[Dims]:
        """Sizes that differ in one axis only, which show how operators depend on it."""
        points = [dict(self.train[Scale.FULL][0])]
        for axis in self.axes:
            for size in (axis.low, axis.low + axis.multiple, axis.low + 4 * axis.multiple):
                point = {**points[0], axis.name: size}
                if self.legal(point) and point not in points:
                    points.append(point)
        return list(points)

    def _further(self, train: Sequence[Dims]) -> tuple[Dims, ...]:
        """Further sizes around the claimed ones: three quarters and five quarters of an axis."""
        points = []
        for dims in train:
            for axis in self.axes:
                for share in (0.75, 1.25):
                    size = round(dims[axis.name] * share / axis.multiple) * axis.multiple
                    point = {**dims, axis.name: size}
                    if self.legal(point) and point not in map(dict, train):
                        points.append(point)
        if not points:
            raise ClaimError(
                f"axes of {self.name!r}: found no size besides the claimed ones; widen the legal "
                "range, a claim is judged on other sizes too"
            )
        return tuple(MappingProxyType(point) for point in points)

    def _tiny(self) -> dict[str, int]:
        """The smallest legal sizes, three steps each where that is legal."""
        return {a.name: min(a.high, max(a.low, 3 * a.multiple)) for a in self.axes}


def _argument(part: InputPart) -> TensorArg | ScalarArg:
    if part.value is not None:
        return ScalarArg(part.name, type(part.value))
    return TensorArg(part.name, part.torch_dtype, shape=part.shape)


def _check(dtype: torch.dtype) -> Check:
    return Check.CLOSE if dtype.is_floating_point else Check.EXACT


def _value(part: InputPart, workload: Workload, generator: torch.Generator) -> torch.Tensor:
    shape, dtype = shape_of(part.shape, workload.dims), part.torch_dtype
    if dtype.is_floating_point:
        return draw(shape, dtype, workload.distribution, generator)
    below = shape_of(part.below, workload.dims)[0] if part.below else 2
    return torch.randint(0, below, shape, generator=generator).to(dtype)
