"""Inputs of timed calls: each call has its own, and all of them are new (rule 11).

Whatever a kernel has kept of an earlier call, its values, sums or order, says nothing about the
next one. So all inputs of a call are drawn again: integers, codes and indices too.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from kernel_gym.devices.answers import StatedOutput, stated_outputs
from kernel_gym.devices.base import InfraError, SharedMemory, TimedCall
from kernel_gym.devices.placement import storage_bytes
from kernel_gym.judge.attempt import Verdict
from kernel_gym.judge.protocol import TIMING
from kernel_gym.judge.timing.deferred_checks import DeferredChecks
from kernel_gym.records import Outcome
from kernel_gym.tasks.problem import Value
from kernel_gym.tasks.sampling import make_inputs
from kernel_gym.tasks.task import Task
from kernel_gym.tasks.workload import Workload

_ALIGNMENT = 256


@dataclass(frozen=True)
class _Kept:
    inputs: Mapping[str, Value]
    places: tuple[int, ...]


class FreshInputs:
    """Draws the inputs of one workload, block by block.

    Args:
        task: The task that is timed.
        workload: Its sizes.
        seed: The seed of the data.
        memory: Takes the inputs, and the outputs of the call that is kept.
        where: The device on which the judge draws inputs.

    Raises:
        InfraError: A call does not fit the memory.
    """

    def __init__(
        self, task: Task, workload: Workload, seed: int, memory: SharedMemory, where: torch.device
    ) -> None:
        self._problem, self._workload, self._memory = task.problem, workload, memory
        self._rng, self._where = random.Random(seed), where
        self._stated: tuple[StatedOutput, ...] = stated_outputs(task.problem, workload.dims)
        self._results = sum(_aligned(one.nbytes) for one in self._stated)
        self.first = self._drawn()
        """A set of inputs, for the form of the calls."""
        size = _aligned(sum(data.numel() for data in _tensors(self.first)))
        fit = (memory.size - self._results) // max(1, size)
        if fit < 1:
            raise InfraError(f"the inputs of {workload} do not fit the shared memory")
        quick = max(TIMING.min_calls, TIMING.block_bytes // max(1, size))
        self.most_calls = min(fit, quick)
        """The most calls of a block."""
        self._kept: _Kept | None = None

    def draw(self, calls: int, kept: int | None) -> list[TimedCall]:
        """Draws and writes the inputs of a block.

        Args:
            calls: How many calls it has.
            kept: The index of the call whose outputs are kept; None for none.
        """
        places, place = [], self._place_results() if kept is not None else ()
        self._kept = None
        offset = self._results
        for index in range(calls):
            inputs = self._drawn()
            places.append(TimedCall(offset, place if index == kept else ()))
            for data in _tensors(inputs):
                offset = self._memory.write(offset, data)
            offset = _aligned(offset)
            if index == kept:
                self._kept = _Kept(inputs, place)
        self._memory.settle()
        return places

    def verify(self, deferred: DeferredChecks) -> Verdict | None:
        """Keeps inputs and outputs of the call that was kept for a check (rule 17).

        Returns:
            What is wrong, if that is known already.
        """
        assert self._kept is not None
        outputs = tuple(
            self._memory.read(place, one.nbytes).view(one.dtype).view(one.shape)
            for one, place in zip(self._stated, self._kept.places, strict=True)
        )
        deferred.add(self._problem, self._workload, self._kept.inputs, outputs)
        wrong = deferred.check() if deferred.full else ""
        return Verdict(Outcome.WRONG_VALUES, wrong) if wrong else None

    def _drawn(self) -> Mapping[str, Value]:
        seed = self._rng.getrandbits(48)
        return make_inputs(self._problem, self._workload, seed, self._where)

    def _place_results(self) -> tuple[int, ...]:
        places, offset = [], 0
        for one in self._stated:
            self._memory.wipe(offset, one.nbytes)
            places.append(offset)
            offset += _aligned(one.nbytes)
        return tuple(places)


def _tensors(inputs: Mapping[str, Value]) -> list[torch.Tensor]:
    return [storage_bytes(v) for v in inputs.values() if isinstance(v, torch.Tensor)]


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
