"""Makes a problem folder from a request: traces the code, chooses workloads, checks the result."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any

import torch

from kernel_gym.imports.authoring.draft import make_draft, used_arguments
from kernel_gym.imports.authoring.points import NUMBER, TooDear, full_points, sim_points
from kernel_gym.imports.authoring.request import TracingRequest, find_sizes, has_widths
from kernel_gym.imports.authoring.space import Explorer, FreeAxis, SizeSpace
from kernel_gym.imports.authoring.tracer import CodeError, Tracer
from kernel_gym.imports.traced.adapter import adapter_text
from kernel_gym.imports.traced.file import NotInShapes, file_text
from kernel_gym.imports.traced.loading import load_text
from kernel_gym.imports.traced.memory import BoundedMemory, TooMuchMemory
from kernel_gym.imports.traced.problem import TracedProblem
from kernel_gym.judge.conditioning import is_fragile
from kernel_gym.judge.expected import compare, expect
from kernel_gym.tasks.names import ORIGINAL
from kernel_gym.tasks.problem import Check, Output, Problem, Scale
from kernel_gym.tasks.sampling import adversarial_workloads, make_inputs, unseen_workloads
from kernel_gym.tasks.workload import Kind, Split, Workload

DISTRIBUTIONS = ("normal", "heavy_tail", "tiny", "sparse", "offset", "large")
"""Those that are tried, in this order. The first legal ones are taken."""
MAX_ROUNDINGS = 16
"""The largest error of the reference in rounding units. Admission takes twice as many."""
MAX_OPERATORS = 250
"""The most operators of a network whose numbers of channels are tried as sizes."""
_FLOORS = (1, 4, 16)
"""Least steps of an axis that are tried. Few outputs may all cancel, which no kernel can match."""
FORMULA = "formula_stub.py"
"""The file to complete; `formula.py` is what admission reads."""


@dataclass
class Written:
    """A problem folder that was written.

    Attributes:
        name: The name of the problem.
        folder: Its folder.
        notes: What the user should know.
        seconds: How long it took.
    """

    name: str
    folder: Path
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0


@dataclass(frozen=True)
class Text:
    """The text of a traced problem.

    Attributes:
        problem: The text of `problem.py`.
        adapter: Code that turns a module with the original's interface into the entry function;
            empty if the original is no module, or takes arguments that are no numbers.
        notes: What the user should know.
    """

    problem: str
    adapter: str
    notes: tuple[str, ...]


def trace_problem(request: TracingRequest, name: str, source: str) -> Text:
    """Traces code and writes the text of a problem.

    Args:
        request: The code and how its inputs are made.
        name: The name of the problem, an identifier.
        source: Where the code comes from, for the record.

    Raises:
        CodeError: The code cannot be a problem. The message says why.
    """
    try:
        return _trace(request, name, source)
    except _TooLarge as error:
        if error.operators > MAX_OPERATORS or not has_widths(request):
            raise CodeError(str(error)) from None
    try:
        return _trace(replace(request, widths=True), name, source)
    except _TooLarge as error:
        raise CodeError(str(error)) from None


class _TooLarge(Exception):
    """The smallest sizes cost too much for the simulator."""

    def __init__(self, text: str, operators: int) -> None:
        super().__init__(text)
        self.operators = operators


def _trace(request: TracingRequest, name: str, source: str) -> Text:
    candidates = find_sizes(request)
    with Tracer(request, candidates) as tracer:
        explorer = Explorer(tracer, request, candidates)
        writer = _Writer(explorer.explore(), explorer, tracer, name, source, request.points)
        try:
            with BoundedMemory():
                text = writer.write()
        except TooMuchMemory as error:
            raise CodeError(str(error)) from None
    space = writer.space
    paths = space.traced.call.paths
    adapter = adapter_text(name, used_arguments(space), space.how, paths, request.called)
    return Text(text, adapter, tuple(space.notes))


def write_problem(request: TracingRequest, name: str, parent: Path, source: str) -> Written:
    """Writes the folder of a problem; see `trace_problem`.

    Args:
        request: The code and how its inputs are made.
        name: The name of the problem, an identifier.
        parent: The folder in which the folder is made.
        source: Where the code comes from, for the record.

    Raises:
        CodeError: The code cannot be a problem. The message says why.
    """
    began = time.monotonic()
    text = trace_problem(request, name, source)
    folder = parent / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "problem.py").write_text(text.problem, encoding="utf-8")
    (folder / ORIGINAL).write_text(request.text, encoding="utf-8")
    (folder / FORMULA).write_text(_stub(load_text(name, text.problem)), encoding="utf-8")
    return Written(name, folder, list(text.notes), time.monotonic() - began)


class _Strict(Enum):
    """Where values must be well-conditioned: admission asks for it on train workloads."""

    EVERYWHERE = "everywhere"
    TRAIN = "train"
    NOWHERE = "nowhere"


class _Writer:
    def __init__(
        self,
        space: SizeSpace,
        explorer: Explorer,
        tracer: Tracer,
        name: str,
        source: str,
        points: Sequence[Mapping[str, int]],
    ) -> None:
        self.space = space
        self._explorer, self._tracer = explorer, tracer
        self._name, self._source, self._points = name, source, points
        self._real = True

    def write(self) -> str:
        """Returns the text of `problem.py`, after checks against the original code."""
        probe = self._probe()
        space = self.space
        try:
            self._choice: dict[str, Any] = self._points_of(space, probe)
        except TooDear as error:
            raise _TooLarge(str(error), len(space.forward)) from None
        distributions = self._chosen(space, probe)
        text = self._text(distributions)
        problem = self._problem(text)
        self._check_unseen(problem)
        self._check_against_original(problem)
        return text

    def _points_of(self, space: SizeSpace, probe: Problem) -> dict[str, object]:
        """Returns the sizes of workloads at both scales.

        Raises:
            TooDear: None fits the simulator.
        """
        base = {axis.name: axis.base for axis in space.axes}
        full = full_points(space.axes, base, self._points)
        sim = sim_points(space.axes, base, lambda d: (probe.bytes(d), probe.flops(d)))
        return {
            "train": {"full": full[:NUMBER], "sim": sim[:NUMBER]},
            "production": {"full": full[NUMBER:], "sim": sim[NUMBER:]},
            "adversarial": [{axis.name: axis.low for axis in space.axes}],
        }

    def _chosen(self, space: SizeSpace, probe: Problem) -> tuple[str, ...]:
        """Chooses least sizes and legal distributions, and returns the latter.

        Well-conditioned ones come first, on which no rounding error decides, then those that are
        so on train workloads. If there are none, admission will say so.
        """
        for strict, self._real, floor in itertools.product(_Strict, (True, False), _FLOORS):
            self.space = replace(space, axes=[_raised(axis, floor) for axis in space.axes])
            try:
                self._choice = self._points_of(self.space, probe)
            except TooDear:
                continue
            legal = self._legal(self._problem(self._text(DISTRIBUTIONS)), strict)
            if legal:
                return legal
        raise CodeError("its fp32 results are no close match of fp64 ones, or not finite")

    def _probe(self) -> Problem:
        """Returns a problem with the right operators, whose workloads are not chosen yet."""
        while True:
            space = self.space
            if not space.axes:
                raise CodeError(
                    "no size of its inputs can vary, so that there would be no unseen workloads: "
                    "name sizes as integers of the module, or as parameters of the generator"
                )
            point = {axis.name: axis.base for axis in space.axes}
            small = {
                axis.name: min(axis.base, max(axis.low, 2 * axis.multiple)) for axis in space.axes
            }
            self._spreads = self._tracer.spreads(self._original_sizes(small), space.train)
            self._choice = {
                "train": {"full": [point], "sim": [point]},
                "production": {"full": [point], "sim": [point]},
                "adversarial": [point],
            }
            try:
                return self._problem(self._text(("normal",)))
            except NotInShapes as error:
                self.space = self._explorer.without(space, error.size)

    def _original_sizes(self, dims: Mapping[str, int]) -> dict[str, int]:
        return {**self.space.sizes, **dims}

    def _text(self, distributions: tuple[str, ...]) -> str:
        return file_text(
            make_draft(
                self._name,
                self.space,
                self._spreads,
                self._source,
                distributions=distributions,
                real=self._real,
                **self._choice,
            )
        )

    def _problem(self, text: str) -> TracedProblem:
        return load_text(self._name, text)

    def _legal(self, problem: TracedProblem, strict: _Strict) -> tuple[str, ...]:
        """Returns the distributions on which the reference is finite and passes, at most three.

        If there are any, those are preferred on which it passes at unseen sizes as well.
        """
        legal: list[str] = []
        holding: list[str] = []
        points = [(dims, strict is not _Strict.NOWHERE) for dims in problem.train[Scale.SIM]]
        points += [(dims, strict is _Strict.EVERYWHERE) for dims in problem.adversarial]
        others = _other_points(problem)
        if not others and strict is not _Strict.NOWHERE:
            return ()  # twins at the least sizes leave no others
        for name in DISTRIBUTIONS:
            if not all(_sound(problem, dict(dims), name, well) for dims, well in points):
                continue
            legal.append(name)
            if all(_sound(problem, dict(dims), name, False) for dims in others):
                holding.append(name)
            if len(holding) == NUMBER:
                break
        return tuple(holding or legal[:NUMBER])

    def _check_unseen(self, problem: TracedProblem) -> None:
        try:
            for seed in range(4):
                for scale in Scale:
                    unseen_workloads(problem, scale, "triton", seed)
        except ValueError as error:
            raise CodeError(f"there are too few sizes for unseen workloads: {error}") from None

    def _check_against_original(self, problem: TracedProblem) -> None:
        """Runs the original on values of some workloads, which must give the reference's answer."""
        unseen = unseen_workloads(problem, Scale.SIM, "triton", 0)
        points = [
            problem.train[Scale.SIM][0],
            problem.adversarial[0],
            unseen[0].dims,
            unseen[3].dims,
        ]
        for number, dims in enumerate(points):
            workload = _workload(dict(dims), problem.distributions[0])
            inputs = make_inputs(problem, workload, number)
            tensors = {k: v for k, v in inputs.items() if isinstance(v, torch.Tensor)}
            sizes = self._original_sizes(dims)
            theirs = self._tracer.run(sizes, self.space.train, tensors)
            with torch.no_grad():
                ours = problem.reference(**{k: v.clone() for k, v in tensors.items()})
            if not _agree(ours, theirs):
                raise CodeError(f"what was traced differs from the original at {dict(dims)}")


def _stub(problem: TracedProblem) -> str:
    """Returns a `formula.py` that states the sizes and arguments and leaves the rest open."""
    names = ", ".join(f"{arg.name}: np.ndarray" for arg in problem.args)
    return f'''"""A second implementation of {problem.name} in numpy, which checks the oracle."""

import numpy as np

SMALL = {dict(problem.adversarial[0])!r}


def formula({names}) -> tuple[np.ndarray, ...]:
    """Returns {", ".join(output.name for output in problem.outputs)} in fp64, without PyTorch."""
    raise NotImplementedError("write the operation in numpy, or remove this file")
'''


def _raised(axis: FreeAxis, floor: int) -> FreeAxis:
    """Returns an axis whose least size is at least some steps, but at most half the original's."""
    least = min(floor * axis.multiple, axis.base // 2 // axis.multiple * axis.multiple)
    return replace(axis, low=max(axis.low, least))


def _other_points(problem: TracedProblem) -> list[Mapping[str, int]]:
    """Returns sizes of adversarial and unseen workloads; none if there are too few sizes."""
    try:
        unseen = unseen_workloads(problem, Scale.SIM, "triton", 0)
        drawn = [*adversarial_workloads(problem, Scale.SIM, "hip"), *unseen]
    except ValueError:
        return []
    points = [workload.dims for workload in drawn]
    return [dims for number, dims in enumerate(points) if dims not in points[:number]]


def _workload(dims: dict[str, int], distribution: str) -> Workload:
    return Workload(dims, Split.TRAIN, Kind.TRAIN, distribution)


def _sound(problem: TracedProblem, dims: dict[str, int], distribution: str, strict: bool) -> bool:
    try:
        expected = expect(problem, _workload(dims, distribution), 0)
    except (RuntimeError, IndexError, ValueError):
        return False
    finite = all(bool(torch.isfinite(out.double()).all()) for out in expected.oracle)
    if not finite or not compare(problem, expected, expected.reference).passed:
        return False
    pairs = zip(problem.outputs, expected.oracle, expected.reference, strict=True)
    if any(_roundings(*pair) > MAX_ROUNDINGS for pair in pairs):
        return False
    return not (strict and is_fragile(problem, expected))


def _roundings(output: Output, exact: torch.Tensor, reference: torch.Tensor) -> float:
    """Returns the largest error of the reference in rounding units of the largest value."""
    if output.check is not Check.CLOSE or not exact.numel():
        return 0.0
    error = float((reference.double() - exact).abs().max())
    unit = torch.finfo(output.dtype).eps / 2
    return error / (unit * float(exact.abs().max()) + 1e-30)


def _agree(ours: tuple[torch.Tensor, ...], theirs: list[torch.Tensor]) -> bool:
    if [(o.shape, o.dtype) for o in ours] != [(t.shape, t.dtype) for t in theirs]:
        return False
    for left, right in zip(ours, theirs, strict=True):
        a, b = left.double(), right.double()
        scale = float(b.abs().nan_to_num(0, 0, 0).max()) if b.numel() else 0.0
        if not torch.allclose(a, b, rtol=1e-3, atol=1e-4 * scale, equal_nan=True):
            return False
    return True
