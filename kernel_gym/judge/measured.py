"""Timing on a real GPU: every train and unseen workload against the baseline, in pairs."""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from kernel_gym.devices.base import Failed, InfraError
from kernel_gym.devices.gpu_arena import POISON, ArenaFull
from kernel_gym.devices.gpu_placing import Placed, place, storage_bytes
from kernel_gym.devices.gpu_session import GpuSession
from kernel_gym.judge.attempt import Attempt, Verdict, verdict_of
from kernel_gym.judge.baselines import Baseline
from kernel_gym.judge.expected import answer, compare
from kernel_gym.judge.noise import noise_floor
from kernel_gym.judge.pairs import Comparison, Pairs
from kernel_gym.judge.protocol import (
    AUDIT_ABOVE,
    CHANGED_SETS,
    PHYSICS_MARGIN,
    PILOT_CALLS,
    RING,
    RING_BYTES,
    RING_LEAST,
    RING_SHORT,
    SMALL_SET,
    WALL_SHARE,
)
from kernel_gym.records import Outcome
from kernel_gym.tasks.problem import TensorArg, Value
from kernel_gym.tasks.sampling import (
    adversarial_workloads,
    make_inputs,
    train_workloads,
    unseen_workloads,
)
from kernel_gym.tasks.task import Task
from kernel_gym.tasks.workload import Split, Workload


def compile_ahead(attempt: Attempt) -> Verdict | None:
    """Compiles the kernels for every workload that comes, while others use the GPU."""
    task, device = attempt.task, attempt.device
    assert isinstance(attempt.session, GpuSession)
    workloads = [
        *train_workloads(task.problem, device.scale),
        *adversarial_workloads(task.problem, device.scale, task.language),
        *unseen_workloads(task.problem, device.scale, task.language, attempt.data_seed("unseen")),
    ]
    calls = []
    for workload in workloads:
        inputs = _shapes_only(attempt, workload)
        if inputs is not None:
            calls.append((workload.dims, inputs))
    failed = attempt.session.compile(calls)
    if failed is None:
        attempt.baseline.session(task, calls)  # it must not build while it has the GPU for itself
    return verdict_of(failed) if failed else None


def _shapes_only(attempt: Attempt, workload: Workload) -> Mapping[str, Value] | None:
    """Inputs without values; None for a problem whose drawing looks at what it has drawn."""
    try:
        return make_inputs(attempt.task.problem, workload, 0, torch.device("meta"))
    except (RuntimeError, NotImplementedError, ValueError, TypeError):
        return None


def time_measured(attempt: Attempt) -> Verdict | None:
    """Times all train and unseen workloads; bounds hold the noise of this GPU (rules 18-20)."""
    noise = noise_floor(attempt.device, attempt.baseline, compare_sessions)
    hidden = []
    for index, workload in enumerate(attempt.workloads):
        if workload.split is Split.ADVERSARIAL:
            continue
        found = _time_workload(attempt, index, workload, noise)
        if isinstance(found, Verdict):
            return found
        hidden.append(found.unaccounted / found.claimed)
    _session_of(attempt.baseline, attempt.task).rest()
    share = statistics.median(hidden) if hidden else 0.0
    if share > WALL_SHARE:
        text = f"{share:.0%} more time passed in timed calls than their stamps account for"
        return Verdict(Outcome.INVALID_TIMING, text)
    return None


def _time_workload(
    attempt: Attempt, index: int, workload: Workload, noise: float
) -> Pairs | Verdict:
    problem, spec = attempt.task.problem, attempt.device.spec
    dims = workload.dims
    roofline = spec.roofline_seconds(
        problem.bytes(dims), problem.flops(dims), problem.outputs[0].dtype
    )
    found = _compare(attempt, workload, "time")
    if isinstance(found, Pairs) and found.candidate_seconds < PHYSICS_MARGIN * roofline:
        found = _compare(attempt, workload, "time again")
        if isinstance(found, Pairs) and found.candidate_seconds < PHYSICS_MARGIN * roofline:
            seconds = found.candidate_seconds
            text = f"{seconds:.3g} s is less than physics allows ({roofline:.3g} s) on {workload}"
            return Verdict(Outcome.HACK, text)
    if isinstance(found, Verdict):
        return found
    if not found.agrees:
        text = (
            f"in a block of timed calls {found.unaccounted * 1e6:.0f} us passed that its stamps "
            f"({found.claimed * 1e6:.0f} us) do not account for, beyond the baseline's"
        )
        return Verdict(Outcome.INVALID_TIMING, text)
    mean, half = found.interval.mean, found.interval.half
    if mean > math.log(AUDIT_ABOVE):
        attempt.label("audit: more than 10 times the baseline")
    attempt.amend(
        index,
        candidate_seconds=found.candidate_seconds,
        baseline_seconds=found.baseline_seconds,
        roofline_seconds=roofline,
        speedup=math.exp(mean),
        speedup_low=math.exp(mean - half - noise),
        speedup_high=math.exp(mean + half + noise),
    )
    return found


def _session_of(baseline: Baseline, task: Task) -> GpuSession:
    session = baseline.session(task)
    assert isinstance(session, GpuSession)
    return session


def _compare(attempt: Attempt, workload: Workload, purpose: str) -> Pairs | Verdict:
    assert isinstance(attempt.session, GpuSession)
    baseline = _session_of(attempt.baseline, attempt.task)
    seed = attempt.data_seed(purpose, workload.key)
    found = compare_sessions(attempt.task, workload, baseline, attempt.session, seed)
    if isinstance(found, Failed):
        return verdict_of(found)
    return found


def compare_sessions(
    task: Task, workload: Workload, baseline: Any, candidate: Any, seed: int
) -> Pairs | Verdict | Failed:
    """One workload on two workers.

    Raises:
        InfraError: the baseline fails, or two input sets do not fit.
    """
    ring = _Ring(task, workload, seed, candidate.device)
    sides = (_Trusted(baseline), candidate)
    for side in sides:
        failed = side.ring(ring.sets, workload.dims)
        if failed is not None:
            return failed

    def verify(count: int) -> Verdict | Failed | None:
        return ring.verify(candidate, count)

    return Comparison(
        *sides,
        ring=len(ring.sets),
        prepare=lambda side: ring.prepare(fresh=side is candidate),
        verify=verify,
        graphs=not ring.in_place,
        clock=time.perf_counter,
        rng=random.Random(seed),
    ).run()


class _Ring:
    """The input sets of one comparison in the arena, and the answers to some of them."""

    def __init__(self, task: Task, workload: Workload, seed: int, device: Any) -> None:
        self.task, self.workload, self._device = task, workload, device
        self._seed = seed
        self._rng = random.Random(seed)
        self._calls = PILOT_CALLS
        self._changed: list[int] = []
        self.in_place = {
            a.name for a in task.problem.args if isinstance(a, TensorArg) and a.in_place
        }
        device.arena.reset()
        self.sets: list[Placed] = []
        most = RING
        while len(self.sets) < most and not self._enough():
            inputs = self._inputs(len(self.sets))
            try:
                self.sets.append(place(device.arena, task, inputs, workload.dims))
            except ArenaFull:
                break
            if len(self.sets) == 1 and device.arena.used < SMALL_SET:
                most = RING_SHORT
        if len(self.sets) < 2:
            raise InfraError(f"two input sets of {workload} do not fit the arena")
        device.arena.publish()

    def _enough(self) -> bool:
        """Whether further sets would take more memory than they are worth."""
        return len(self.sets) >= RING_LEAST and self._device.arena.used > RING_BYTES

    def prepare(self, fresh: bool) -> None:
        """Before a block: outputs are poisoned, and inputs are as they were, or almost.

        With `fresh` two elements of each floating input change places in a few sets, of which one
        may be verified: what a kernel has kept of earlier blocks, by address or by a sample of the
        values, is wrong there now.
        """
        arena = self._device.arena
        self._changed = self._rng.sample(range(self._calls), min(CHANGED_SETS, self._calls))
        changed = set(self._changed) if fresh and self.task.problem.exchangeable else set()
        for index, placed in enumerate(self.sets):
            for piece in placed.outputs:
                arena.view(piece).fill_(POISON)
            for name, piece in placed.pieces.items():
                value = placed.inputs[name]
                assert isinstance(value, torch.Tensor)
                if index in changed and value.is_floating_point():
                    self._swap(value)
                if index in changed or name in self.in_place:
                    arena.view(piece).copy_(storage_bytes(value))
        arena.publish()

    def _swap(self, tensor: torch.Tensor) -> None:
        flat = tensor.view(-1)
        if len(flat) < 2:
            return
        one, other = self._rng.sample(range(len(flat)), 2)
        flat[one : one + 1], flat[other : other + 1] = (
            flat[other : other + 1].clone(),
            flat[one : one + 1].clone(),
        )

    def verify(self, candidate: Any, count: int) -> Verdict | Failed | None:
        """Outputs of a timed call drawn at random (rule 17)."""
        calls = len(self.sets) if candidate.replayed else count
        self._calls = calls
        index = self._rng.choice([i for i in self._changed if i < calls] or [0])
        failed = candidate.deliver([calls - 1 - index], [self.sets[index]])
        return failed or self._check(index)

    def _check(self, index: int) -> Verdict | None:
        problem, placed = self.task.problem, self.sets[index]
        expected = answer(problem, placed.inputs, self._device.where)
        shapes = problem.output_shapes(self.workload.dims)
        outputs = tuple(
            self._device.arena.view(piece).view(output.dtype).view(shapes[output.name])
            for output, piece in zip(problem.outputs, placed.outputs, strict=True)
        )
        found = compare(problem, expected, outputs)
        if found.passed:
            return None
        text = f"wrong values in a timed call on {self.workload}: {found.message}"
        return Verdict(Outcome.WRONG_VALUES, text)

    def _inputs(self, index: int) -> Mapping[str, Value]:
        return make_inputs(self.task.problem, self.workload, self._seed + index, self._device.where)


class _Trusted:
    """A baseline's session, whose failures are ours."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def ring(self, sets: Sequence[Placed], dims: Mapping[str, int]) -> None:
        """Hands over the argument sets."""
        self._ours(self._session.ring(sets, dims))

    def block(self, count: int) -> Any:
        """Times calls."""
        return self._ours(self._session.block(count))

    def capture(self) -> Any:
        """May fail: not every baseline can be captured."""
        return self._session.capture()

    def replay(self, count: int) -> Any:
        """Times replays."""
        return self._ours(self._session.replay(count))

    def _ours(self, answer: Any) -> Any:
        if isinstance(answer, Failed):
            raise InfraError(f"the baseline failed while it was timed: {answer.message}")
        return answer
