"""States the workloads of recorded calls: runs the suite's own code on them in a reference worker.

A workload is kept if the code runs without a fault and answers in time. Its outputs are then what a
candidate has to return. Sizes vary along the axes of a template. If the recorded sizes are too slow
on the device, smaller twins along the same axes stand for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import torch

from kernel_gym.devices.base import Audit, Device
from kernel_gym.imports.bench.forms import DIFFER, state_train
from kernel_gym.imports.bench.proposals import odd_sizes, proposals
from kernel_gym.imports.bench.statements import (
    StatingTrial,
    TaskStatement,
    all_finite,
    equal_bytes,
    has_no_nan,
    notes_on,
    same_answer,
)
from kernel_gym.imports.bench.suite_code import CallFailed, SuiteCode
from kernel_gym.imports.recorded.draw import ImpossibleError
from kernel_gym.imports.recorded.problem import CALL, RecordedProblem
from kernel_gym.imports.recorded.stated import StatedWorkload
from kernel_gym.imports.recorded.templates import CallTemplate, padded, strided, widened
from kernel_gym.tasks.names import Mode
from kernel_gym.tasks.problem import Check, Output, Scale
from kernel_gym.tasks.workload import Kind, Split

MAX_UNSEEN_WORKLOADS = 6
MAX_ADVERSARIAL_WORKLOADS = 2
MAX_CHANGED_WORKLOADS = 3
"""Train workloads of a function that are tried in another layout, or with larger values."""
SLOW_CALL_SECONDS = 0.7
"""Processor seconds of the simulated GPU for one call. Slower ones get a twin."""
MAX_CALL_SECONDS = 3.0
"""The same for a call whose sizes cannot be smaller."""
MAX_ELEMENTS = 1 << 22
"""Elements of the tensors of a call. The host draws them many times, so larger ones get a twin."""
MAX_ELEMENTS_ON_GPU = 1 << 27
"""Elements of the tensors of a call on a GPU whose sizes are not the suite's."""
MAX_SHRINKS = 10
"""How often a size of a twin is made smaller."""
DIVISOR_AFTER_STOP, DIVISOR_AFTER_SLOW = 4, 2
"""By what a size is divided after a call that was stopped, and after a slow one."""
FEW_ELEMENTS = 64
"""Elements of an answer that may be right by chance. More values are tried for fewer ones."""
EXTRA_SEEDS = range(3, 9)
"""Seeds of those values."""
MAX_STATING_SECONDS = 20.0
"""Seconds of work after which no more workloads are tried for a task. Work is what the simulated
GPU's processor does, and at least `MIN_CALL_SECONDS` a call: no busy machine changes a result."""
MAX_SECONDS_WITHOUT_WORKLOAD = 60.0
"""Seconds of work after which a task is given up none of whose calls has run."""
MIN_CALL_SECONDS = 0.02
"""Seconds of work that count for any call."""


def state_workloads(
    device: Device,
    problem: RecordedProblem,
    mode: Mode,
    recorded: Sequence[Mapping[str, int]],
) -> TaskStatement:
    """States train, unseen and adversarial workloads.

    Args:
        device: The device.
        problem: The problem, with templates and without workloads.
        mode: The mode of the task.
        recorded: The dimensions of the recorded calls, each with its template.

    Raises:
        UnsupportedTask: The suite's own code answers none of them.
    """
    with _Reference(device, problem, mode) as reference:
        train, flags, notes = state_train(reference, problem, recorded)
        statement = TaskStatement(list(train), flags, notes)
        if "nan" not in statement.flags:  # else hardly any other size has an answer without NaN
            statement.stated += reference.beyond(train)
        statement.notes += notes_on(device, problem, statement.stated, reference.twins)
        return statement


class _Reference:
    """States workloads by calls of the suite's own code."""

    def __init__(self, device: Device, problem: RecordedProblem, mode: Mode) -> None:
        self._code = SuiteCode(device, problem, mode)
        self._problem, self._mode = problem, mode
        self._may_shrink = device.description.scale is Scale.SIM
        """Whether smaller twins stand for slow sizes. On a GPU sizes are as they are."""
        self._largest = MAX_ELEMENTS if self._may_shrink else MAX_ELEMENTS_ON_GPU
        self._slow = False
        self._work = 0.0
        self.why = ""
        """Why the first call failed."""
        self.failure = ""
        """Why the last call failed."""
        self.twins = 0
        self.forms = 0
        self.evidence: dict[str, dict[str, str]] = {}
        """Objections to each train workload: flags, each with its observation."""

    @property
    def late(self) -> bool:
        """Whether the work for a task is done."""
        return self._work > MAX_STATING_SECONDS

    @property
    def hopeless(self) -> bool:
        """Whether a task is given up that has no workload yet."""
        return self._work > MAX_SECONDS_WITHOUT_WORKLOAD

    def __enter__(self) -> _Reference:
        return self

    def __exit__(self, *_: object) -> None:
        self._code.close()

    def _call(
        self, stated: StatedWorkload, seed: int, **options: Any
    ) -> tuple[tuple[torch.Tensor, ...], float]:
        """Makes one call and counts its work."""
        try:
            outputs, seconds = self._code.call(stated, seed, **options)
        except CallFailed as error:
            self._work += MAX_CALL_SECONDS if error.slow else MIN_CALL_SECONDS
            raise
        self._work += max(seconds, MIN_CALL_SECONDS)
        return outputs, seconds

    def train(self, dims: Mapping[str, int]) -> StatedWorkload | None:
        """States a recorded call, or a twin of it."""
        if not self._may_shrink:
            return self._kept(dims, self._try(dict(dims), Kind.TRAIN, Split.TRAIN))
        large = self._problem.elements(dims) > MAX_ELEMENTS
        trial = None if large else self._try(dict(dims), Kind.TRAIN, Split.TRAIN)
        if trial is None and not (large or self._slow):
            return None
        sizes, left = dict(dims), MAX_SHRINKS
        while (trial is None or trial.seconds > SLOW_CALL_SECONDS) and left and not self.hopeless:
            smaller, still_large, before = None, False, left
            parts = DIVISOR_AFTER_STOP if trial is None else DIVISOR_AFTER_SLOW
            for name in sorted(sizes.keys() - {CALL}, key=lambda one: -sizes[one]):
                if sizes[name] < parts or not left:
                    continue
                left -= 1
                fewer = sizes | {name: sizes[name] // parts}
                still_large = self._problem.elements(fewer) > MAX_ELEMENTS
                smaller = None if still_large else self._try(fewer, Kind.TRAIN, Split.TRAIN)
                if smaller is not None or still_large or self._slow:
                    sizes = fewer
                    break
            if left == before or (smaller is None and not (still_large or self._slow)):
                break  # no size can be smaller, or none helps
            trial = smaller
        if trial is None and large:  # no size of it can be smaller
            sizes, trial = dict(dims), self._try(dict(dims), Kind.TRAIN, Split.TRAIN)
        return self._kept(dims, trial)

    def _kept(self, dims: Mapping[str, int], trial: StatingTrial | None) -> StatedWorkload | None:
        """Looks at a call, unless it failed or is too slow."""
        if trial is None or trial.seconds > MAX_CALL_SECONDS:
            self._failed("slow: no smaller twin of its calls runs")
            return None
        self.twins += dict(trial.stated.dims) != dict(dims)
        self.evidence[trial.stated.key] = self._look(trial)
        return trial.stated

    def _failed(self, text: str) -> None:
        self.why, self.failure = self.why or text, text

    def beyond(self, train: Sequence[StatedWorkload]) -> list[StatedWorkload]:
        """States unseen and adversarial workloads."""
        taken = [dict(one.dims) for one in train]
        self.forms = len({one.dims[CALL] for one in train})
        unseen = self.state_proposals(proposals(train, self._problem.name), taken, Split.UNSEEN)
        odd = self.state_proposals(odd_sizes(train), taken, Split.ADVERSARIAL)
        changed = [one for change in (strided, padded) for one in self.changed(train, change)]
        wide = self.changed(train, widened, same=False)
        return [*unseen, *odd, *changed, *wide]

    def state_proposals(
        self, proposed: Iterator[tuple[Kind, dict[str, int]]], taken: list, split: Split
    ) -> list[StatedWorkload]:
        """States the proposals that the suite's own code answers."""
        most = (
            max(MAX_UNSEEN_WORKLOADS, self.forms)
            if split is Split.UNSEEN
            else MAX_ADVERSARIAL_WORKLOADS
        )
        usable_ones: list[StatedWorkload] = []
        failures = 0
        for kind, dims in proposed:
            if len(usable_ones) >= most or failures > 2 * most or self.late:
                break
            if dims in taken or self._problem.elements(dims) > self._largest:
                continue
            taken.append(dims)
            trial = self._try(dims, kind, split)
            usable = (
                trial is not None
                and trial.seconds <= SLOW_CALL_SECONDS
                and has_no_nan(trial.outputs)
            )
            failures += not usable
            if usable and trial is not None:
                usable_ones.append(trial.stated)
        return usable_ones

    def changed(
        self,
        train: Sequence[StatedWorkload],
        change: Callable[[CallTemplate], CallTemplate | None],
        same: bool = True,
    ) -> list[StatedWorkload]:
        """States a call of each function in another layout or of larger values.

        The suite's own code must take it. It takes a layout if it gives the answer that it gives on
        contiguous tensors of the same values, and larger values if its answer is finite.

        Args:
            train: The train workloads.
            change: Changes a template.
            same: Whether the answer must be that of the unchanged call.
        """
        attempts: Counter[str] = Counter()
        stated: dict[str, StatedWorkload] = {}
        for one in train:
            template = self._problem.templates[one.dims[CALL]]
            other, name = change(template), template.call.function
            if (
                other is None
                or name in stated
                or attempts[name] >= MAX_CHANGED_WORKLOADS
                or self.late
            ):
                continue
            attempts[name] += 1
            if (taken := self._taken(one, other, same)) is not None:
                stated[name] = taken
        return list(stated.values())

    def _taken(self, one: StatedWorkload, other: CallTemplate, same: bool) -> StatedWorkload | None:
        """States a call by a changed template, if the suite's own code takes it."""
        dims = {**one.dims, CALL: self._problem.templates.index(other)}
        trial = self._try(dims, Kind.ADVERSARIAL, Split.ADVERSARIAL)
        if trial is None or trial.seconds > SLOW_CALL_SECONDS or not has_no_nan(trial.outputs):
            return None
        if not same:
            return trial.stated if all_finite(trial.outputs) else None
        try:
            plain, _ = self._call(one, 1)
        except CallFailed:
            return None
        return trial.stated if same_answer(plain, trial.outputs) else None

    def _try(self, dims: dict[str, int], kind: Kind, split: Split) -> StatingTrial | None:
        """Makes a call three times: to learn its outputs, again, and on other values."""
        self._slow = False
        self._code.operators.clear()
        known = StatedWorkload(dims, kind, split, (), False)
        try:
            first, seconds = self._call(known, 1)
            if self._problem.templates[dims[CALL]].call.backward:
                known = replace(known, outputs=self._named(dims, first, 0))
                whole, seconds = self._call(known, 1)
                known = replace(known, outputs=self._named(dims, whole, len(whole) - len(first)))
                first = whole
            else:
                known = replace(known, outputs=self._named(dims, first, 0))
        except ImpossibleError as error:
            self._failed(f"no fresh values: {error}")
            return None
        except CallFailed as error:
            self._slow = error.slow
            self._failed(f"it does not run: {error}")
            return None
        if not any(t.numel() for t in first):
            self._failed("no output: it returns and changes no tensor")
            return None
        if seconds > SLOW_CALL_SECONDS:  # the first call compiles and tunes
            with suppress(CallFailed):
                _, seconds = self._call(known, 1)
        if split is not Split.TRAIN:  # the judge audits all of these calls
            try:
                other, _ = self._call(known, 2, audit=Audit.REVERSED)
            except CallFailed:
                return None
            if [t.shape for t in other] != [t.shape for t in first]:
                return None
        operators = tuple(sorted(self._code.operators))
        known = replace(known, operators=operators, exact=self._exact(known))
        return StatingTrial(first, known, seconds)

    def _look(self, trial: StatingTrial) -> dict[str, str]:
        """Returns what makes verdicts on a workload mean little, by flag."""
        try:
            again, _ = self._call(trial.stated, 1)
            other, _ = self._call(trial.stated, 2)
            without = again
            if self._mode.has_start_kernel:
                without, _ = self._call(trial.stated, 1, noop=True)
        except CallFailed as error:
            return {"irreproducible": f"the second call failed: {error}"}
        if any(
            [t.shape for t in found] != [t.shape for t in again]
            for found in (trial.outputs, other, without)
        ):
            return {"irreproducible": "shapes of the answer depend on values"}
        flags = {}
        if not same_answer(trial.outputs, again):
            flags["irreproducible"] = DIFFER
        if all(equal_bytes(a, b) for a, b in zip(trial.outputs, other, strict=True)):
            flags |= self._blind(trial.stated)
        if self._mode.has_start_kernel and all(map(equal_bytes, trial.outputs, without)):
            flags["vacuous"] = "the answer is the same without its kernels"
        if not has_no_nan(trial.outputs):
            flags["nan"] = "the answer holds NaN"
        if not flags and sum(t.numel() for t in trial.outputs) <= FEW_ELEMENTS:
            flags |= self._by_chance(trial)
        several = [t for t in trial.outputs if t.numel() > 1]
        if several and all(bool((t == t.flatten()[0]).all()) for t in several):
            flags["constant"] = "all elements of the answer are equal"
        return flags

    def _by_chance(self, trial: StatingTrial) -> dict[str, str]:
        """Looks for flags that only some values show, since an answer has few elements."""
        for seed in EXTRA_SEEDS:
            try:
                answer, _ = self._call(trial.stated, seed)
                without: tuple[torch.Tensor, ...] = ()
                if self._mode.has_start_kernel:
                    without, _ = self._call(trial.stated, seed, noop=True)
            except CallFailed as error:
                return {"irreproducible": f"a call on other values failed: {error}"}
            if [t.shape for t in answer] != [t.shape for t in trial.outputs]:
                return {"irreproducible": "shapes of the answer depend on values"}
            if without and all(map(equal_bytes, answer, without)):
                return {"vacuous": "the answer to some values is the same without its kernels"}
        return {}

    def _blind(self, stated: StatedWorkload) -> dict[str, str]:
        """Tells an answer that ignores its inputs from tests that always pass the same values."""
        one, other = (self._code.inputs(stated, seed) for seed in (1, 2))
        tensors = [(a, other[name]) for name, a in one.items() if isinstance(a, torch.Tensor)]
        if all(isinstance(b, torch.Tensor) and equal_bytes(a, b) for a, b in tensors):
            return {"fixed-inputs": "its tests pass the same values at each size"}
        return {"seed-blind": "other values give the same answer"}

    def _exact(self, stated: StatedWorkload) -> bool:
        """Whether the code answers fp64 inputs with fp64 outputs. Kernels are not asked."""
        if self._mode.has_start_kernel:
            return False
        floating = [o for o in stated.outputs if o.dtype.is_floating_point]
        if not floating:
            return False
        try:
            answer, _ = self._call(stated, 1, exact=True)
        except CallFailed:
            return False
        pairs = zip(stated.outputs, answer, strict=False)
        same = len(answer) == len(stated.outputs)
        return same and all(
            t.dtype == (torch.float64 if o.dtype.is_floating_point else o.dtype) for o, t in pairs
        )

    def _named(
        self, dims: Mapping[str, int], outputs: Sequence[torch.Tensor], gradients: int
    ) -> tuple[Output, ...]:
        changed = sum(f.mutated for f in self._problem.templates[dims[CALL]].call.tensors)
        plain = len(outputs) - changed - gradients
        names = [f"out{i}" for i in range(plain)] + [f"changed{i}" for i in range(changed)]
        names += [f"gradient{i}" for i in range(gradients)]
        return tuple(
            Output(
                name,
                tensor.dtype,
                Check.CLOSE if tensor.dtype.is_floating_point else Check.EXACT,
                ", ".join(map(str, tensor.shape)),
            )
            for name, tensor in zip(names, outputs, strict=True)
        )
