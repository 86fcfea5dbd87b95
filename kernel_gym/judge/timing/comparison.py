"""Compares two sessions on one workload, in one or two stages."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

from kernel_gym.devices.base import Device, Failed, InfraError, TimedSession
from kernel_gym.judge.protocol import TIMING
from kernel_gym.judge.timing.deferred_checks import DeferredChecks
from kernel_gym.judge.timing.fresh_inputs import FreshInputs
from kernel_gym.judge.timing.log_ratios import pairs_needed
from kernel_gym.judge.timing.paired import Ended, PairedBenchmark, PairedResult, PairedSetup
from kernel_gym.tasks.task import Task
from kernel_gym.tasks.workload import Workload


class WorkloadComparison:
    """A comparison of two sessions. They may run other workloads between its stages.

    Args:
        task: What both sides solve.
        workload: The workload.
        baseline: One side. Its failures are failures of the machine.
        candidate: The other side.
        seed: The seed of data and order.
        device: The GPU.
        deferred: Takes the outputs of timed calls that are checked later.

    Raises:
        InfraError: A call does not fit.
    """

    def __init__(
        self,
        task: Task,
        workload: Workload,
        baseline: TimedSession,
        candidate: TimedSession,
        seed: int,
        device: Device,
        deferred: DeferredChecks,
    ) -> None:
        self._dims, self._baseline, self._candidate = workload.dims, baseline, candidate
        where = device.description.torch_device
        self._inputs = inputs = FreshInputs(task, workload, seed, candidate.memory, where)
        self._beside = baseline.beside(candidate)
        setup = PairedSetup(
            draw=inputs.draw,
            place=inputs.place,
            verify=lambda drawn, call: inputs.verify(drawn, call, deferred),
            clock=time.perf_counter,
            rng=random.Random(seed),
        )
        self._benchmark = PairedBenchmark(baseline, self._beside, candidate, setup)

    @property
    def result(self) -> PairedResult:
        """All pairs so far."""
        return self._benchmark.result

    def measure(self, pairs: int) -> Ended | None:
        """Measures until the result has so many pairs, or no time is left.

        Raises:
            InfraError: The baseline failed.
        """
        return self._selected() or self._benchmark.measure(pairs)

    def _selected(self) -> Failed | None:
        """Has the launchers load the workload; returns the candidate's failure."""
        inputs = self._inputs.draw()
        failed = self._baseline.select(inputs, self._dims)
        if isinstance(failed, Failed):
            raise InfraError(f"the baseline failed while it was timed: {failed.message}")
        failed = self._candidate.select(inputs, self._dims)
        if isinstance(failed, Failed):
            return failed
        failed = self._beside.select(inputs, self._dims) if self._beside else None
        if isinstance(failed, Failed):
            raise InfraError(f"the baseline does not load beside the candidate: {failed.message}")
        return None


def measure_split(comparisons: Sequence[WorkloadComparison]) -> Ended | None:
    """Measures all workloads of a split in two stages.

    Returns:
        The failure that ended a comparison, if there was one.

    Raises:
        InfraError: The baseline failed.
    """
    for comparison in comparisons:
        if ended := comparison.measure(TIMING.min_pairs):
            return ended
    needed = pairs_needed([comparison.result.effects for comparison in comparisons])
    for comparison, pairs in zip(comparisons, needed, strict=True):
        if pairs > len(comparison.result.effects) and (ended := comparison.measure(pairs)):
            return ended
    return None


def compare_sessions(
    task: Task,
    workload: Workload,
    baseline: TimedSession,
    candidate: TimedSession,
    seed: int,
    device: Device,
    deferred: DeferredChecks,
) -> PairedResult | Ended:
    """Compares two sessions on one workload, see `WorkloadComparison`."""
    comparison = WorkloadComparison(task, workload, baseline, candidate, seed, device, deferred)
    return measure_split([comparison]) or comparison.result
