"""Turns a statement into a problem, so that a claim passes through all gates of the evaluator."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
import torch.nn.functional as F

from kernel_gym.judge.screen import screen
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
_NARROW = re.compile(r"\.(float|half|bfloat16)\(\)")
_NARROW_TYPE = re.compile(r"\btorch\.(float16|bfloat16|float32|half|float)\b")

Reference = Callable[..., tuple[torch.Tensor, ...]]


class ClaimedProblem(Problem):
    """A problem of a statement and a PyTorch reference.

    Args:
        statement: The statement.
        reference: The text of a module that defines the entry in PyTorch. It runs in this process:
            it belongs to the person who asks, and must not come from the one who claims.
        kernels: The baseline kernel by language.

    Raises:
        ClaimError: The reference cannot be used.
    """

    category = "Fusion"
    level = 1
    source = "a claim"

    def __init__(self, statement: Statement, reference: str, kernels: dict[str, str]) -> None:
        self.statement, self._reference_text, self._kernels = statement, reference, kernels
        self.name = statement.entry
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
        self._run = _function(reference, statement.entry)
        self._run_exactly = _function(exact_source(reference), statement.entry)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClaimedProblem) and list(self.content()) == list(other.content())

    def __hash__(self) -> int:
        return hash(tuple(self.content()))

    @property
    def folder(self) -> Path | None:
        """None, because a claim has no folder of a problem."""
        return None

    @property
    def definition(self) -> str:
        """The reference."""
        return self._reference_text

    def kernel(self, language: str) -> str | None:
        """The baseline kernel in a language, or None."""
        return self._kernels.get(language)

    def reference_source(self) -> str:
        """The text of the reference."""
        return self._reference_text

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

    def oracle(self, *args: Any, **inputs: Any) -> tuple[torch.Tensor, ...]:
        """The reference in fp64, with every cast to a narrow type removed."""
        wide = {
            name: value.double()
            if isinstance(value, torch.Tensor) and value.is_floating_point()
            else value
            for name, value in inputs.items()
        }
        outputs = _tuple(self._run_exactly(**wide))
        return tuple(out.double() if out.is_floating_point() else out for out in outputs)

    def reference(self, *args: Any, **inputs: Any) -> tuple[torch.Tensor, ...]:
        """The reference as it is."""
        return _tuple(self._run(**inputs))

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


def exact_source(reference: str) -> str:
    r"""A reference without casts to types narrower than fp64.

    Example:
        >>> exact_source("def f(x):\n    return x.float().to(torch.bfloat16)\n").splitlines()[1]
        '    return x.double().to(torch.float64)'
    """
    return _NARROW_TYPE.sub("torch.float64", _NARROW.sub(".double()", reference))


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


def _tuple(answer: Any) -> tuple[torch.Tensor, ...]:
    return tuple(answer) if isinstance(answer, list | tuple) else (answer,)


def _function(source: str, entry: str) -> Reference:
    """Loads the reference. The screen of candidates refuses files, processes and the like.

    Raises:
        ClaimError: It is refused, does not run, or does not define the entry.
    """
    refused = screen(source, "triton").rejection
    if refused:
        raise ClaimError(f"reference: {refused}")
    name = hashlib.sha256(source.encode()).hexdigest()[:8]
    scope: dict[str, Any] = {"torch": torch, "F": F, "__name__": f"reference_{name}"}
    try:
        exec(compile(source, f"<reference {name}>", "exec"), scope)
    except Exception as error:
        raise ClaimError(f"reference: {type(error).__name__}: {error}") from None
    function = scope.get(entry)
    if not callable(function):
        raise ClaimError(f"reference: found no function {entry!r}")
    return function
