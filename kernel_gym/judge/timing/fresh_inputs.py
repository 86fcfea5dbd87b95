"""Inputs of timed calls: each call has its own, and all of them are new (rule 11).

A kernel may keep values, sums or the order of an earlier call, but they must not help in the next
call. So all tensors of a call are drawn again: integers, codes and indices too. Both sides of a
pair have the same inputs, which are written again for each side. Scalars are part of the timed
plan, so all calls of a comparison have the scalars of the first call.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

import torch

from kernel_gym.devices.answers import StatedOutput, stated_outputs
from kernel_gym.devices.base import InfraError, SharedMemory, TimedCall
from kernel_gym.devices.placement import storage_bytes
from kernel_gym.judge.attempt import Verdict
from kernel_gym.judge.timing.deferred_checks import DeferredChecks
from kernel_gym.records import Outcome
from kernel_gym.tasks.problem import Value
from kernel_gym.tasks.sampling import make_inputs
from kernel_gym.tasks.task import Task
from kernel_gym.tasks.workload import Workload

_ALIGNMENT = 256


class FreshInputs:
    """Draws the inputs of one workload, call by call.

    Args:
        task: The task that is timed.
        workload: Its sizes.
        seed: The seed of the data.
        memory: Takes the inputs of a call, and its outputs.
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
        self._results = sum(_aligned(output.nbytes) for output in self._stated)
        self._scalars: dict[str, Value] = {}
        first = self.draw()
        self._scalars = {k: v for k, v in first.items() if not isinstance(v, torch.Tensor)}
        size = sum(data.numel() for data in _tensors(first))
        if self._results + size > memory.size:
            raise InfraError(f"the inputs of {workload} do not fit the shared memory")

    def draw(self) -> Mapping[str, Value]:
        """Draws the tensors of a call."""
        seed = self._rng.getrandbits(48)
        return make_inputs(self._problem, self._workload, seed, self._where) | self._scalars

    def place(self, inputs: Mapping[str, Value], kept: bool = False) -> TimedCall:
        """Writes the inputs of a call.

        Args:
            inputs: The inputs, as they were drawn.
            kept: Whether outputs of the call are wanted.
        """
        places = self._place_results() if kept else ()
        return TimedCall(self._memory.stage(self._results, _tensors(inputs)), places)

    def verify(
        self, inputs: Mapping[str, Value], call: TimedCall, deferred: DeferredChecks
    ) -> Verdict | None:
        """Keeps inputs and outputs of a call for a check (rule 17).

        Returns:
            What is wrong, if that is known already.
        """
        outputs = tuple(
            self._memory.read(place, output.nbytes).view(output.dtype).view(output.shape)
            for output, place in zip(self._stated, call.results, strict=True)
        )
        deferred.add(self._problem, self._workload, inputs, outputs)
        wrong = deferred.check() if deferred.full else ""
        return Verdict(Outcome.WRONG_VALUES, wrong) if wrong else None

    def _place_results(self) -> tuple[int, ...]:
        places, offset = [], 0
        for output in self._stated:
            places.append(offset)
            offset += _aligned(output.nbytes)
        return tuple(places)


def _tensors(inputs: Mapping[str, Value]) -> list[torch.Tensor]:
    return [storage_bytes(v) for v in inputs.values() if isinstance(v, torch.Tensor)]


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
