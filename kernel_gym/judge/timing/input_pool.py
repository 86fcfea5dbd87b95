"""The pool of input sets that timed calls rotate over (rule 11).

Both sides of a comparison hold the same sets at the same addresses. Before each block of the
candidate, the elements of each floating-point input are rotated by an offset that is drawn for this
block. So results that a kernel has cached are wrong, no matter whether it recognises inputs by
address, by a sample or by comparing all of them. Inputs with constant rows are rotated by whole
rows, because a row with two constants would have larger fp32 errors than any distribution has. If
no input can be rotated, all inputs are drawn again for each of these blocks.

A block uses each set once. Short calls need many sets to fill a block, and drawing them takes long.
So the sets beyond the drawn ones are copies of them, and each group of copies has an offset of its
own.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from kernel_gym.devices.base import Failed, InfraError, TimedSession
from kernel_gym.devices.placement import (
    ArenaPiece,
    InputMemory,
    MemoryFullError,
    Placed,
    in_place_inputs,
    place,
    storage_bytes,
)
from kernel_gym.judge.attempt import Verdict
from kernel_gym.judge.protocol import POOL
from kernel_gym.judge.timing.deferred_checks import DeferredChecks
from kernel_gym.records import Outcome
from kernel_gym.tasks.problem import Value
from kernel_gym.tasks.sampling import make_inputs
from kernel_gym.tasks.task import Task
from kernel_gym.tasks.workload import Workload

_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Integer types by which elements of any type are copied, by size in bytes."""


class InputPool:
    """The input sets of one workload.

    Args:
        task: The task that is timed.
        workload: Its sizes. Inputs of timed workloads are contiguous.
        seed: The seed of the data and of the offsets.
        memory: The shared memory for the sets.
        where: The device on which the judge draws inputs.
        most: The most sets; 0 for the usual number.
        times: The usual number of sets is multiplied by this.

    Raises:
        InfraError: Two sets do not fit the memory.
    """

    def __init__(
        self,
        task: Task,
        workload: Workload,
        seed: int,
        memory: InputMemory,
        where: torch.device,
        most: int = 0,
        times: int = 1,
    ) -> None:
        self._times = times
        self._problem, self._workload, self._memory = task.problem, workload, memory
        self._rng = random.Random(seed)
        self._values: list[dict[str, Value]] = []
        self.sets: list[Placed] = []
        memory.reset()
        wanted = most or times * POOL.sets
        while len(self.sets) < wanted and not self._large_enough():
            inputs = make_inputs(task.problem, workload, seed + len(self.sets), where)
            try:
                self.sets.append(place(memory, task, inputs, workload.dims, guarded=False))
            except MemoryFullError:
                break
            self._values.append(inputs)
            if not most and len(self.sets) == 1 and memory.used < POOL.small_set_bytes:
                wanted = times * POOL.small_sets
        if len(self.sets) < 2:
            raise InfraError(f"two input sets of {workload} do not fit the arena")
        self._restored = in_place_inputs(task)
        self._where = where
        self._nothing = torch.zeros(1, device=where)
        self._rotates = any(self._rotation(name).moves for name in self.sets[0].pieces)
        """Whether some input can be rotated. Otherwise all inputs are drawn again."""
        if self._rotates and not most:
            self._add_copies(task)
        self._columns = {name: self._column(name) for name in self.sets[0].pieces}
        self._intact = 0
        """The first sets, as many as this, cannot have been changed by the candidate since they
        were written."""

    @property
    def in_place(self) -> bool:
        """Whether calls overwrite inputs, so that a call cannot be repeated as it is."""
        return bool(self._restored)

    def prepare(self, session: TimedSession, calls: int, fresh: bool) -> None:
        """Prepares the inputs of a block.

        The candidate can write to the memory of all inputs. So the inputs of a baseline's block are
        written again after every block of the candidate. Before each block the judge gives the GPU
        some work, because taking the GPU over from another process takes time that no stamp
        includes.

        Args:
            session: The session that runs the block.
            calls: The number of calls in the block; it uses as many sets.
            fresh: Whether the block is the candidate's. Then outputs are poisoned and
                floating-point inputs are rotated.
        """
        self._nothing.zero_()
        if fresh:
            session.poison_outputs(self.sets)
            if not self._rotates:
                self._draw_again(calls)
        damaged = self._memory.coherent and not fresh and calls > self._intact
        for name, column in self._columns.items():
            changed = fresh and (column.moves or not self._rotates)
            if fresh:
                column.draw(self._rng)
            if changed or damaged or name in self._restored:
                column.put(calls)
                session.mark_changed(column.pieces[:calls])
        self._intact = 0 if fresh else max(calls, self._intact)

    def verify(
        self, candidate: TimedSession, calls: int, deferred: DeferredChecks
    ) -> Verdict | Failed | None:
        """Keeps the outputs of a randomly drawn call of the last block for a check (rule 17).

        Args:
            candidate: The session that ran the block.
            calls: The number of calls in the block.
            deferred: Takes inputs and outputs.

        Returns:
            What is wrong, if that is known already.
        """
        index = self._rng.randrange(calls)
        placed = self.sets[index]
        failed = candidate.read_outputs(index, calls, placed)
        if failed is not None:
            return failed
        dims = self._workload.dims
        shapes = self._problem.output_shapes(dims)
        outputs = tuple(
            self._memory.view(piece).view(output.dtype).view(shapes[output.name])
            for output, piece in zip(self._problem.outputs_at(dims), placed.outputs, strict=True)
        )
        moved = {name: column.values(index) for name, column in self._columns.items()}
        deferred.add(self._problem, self._workload, {**placed.inputs, **moved}, outputs)
        wrong = deferred.check() if deferred.full else ""
        return Verdict(Outcome.WRONG_VALUES, wrong) if wrong else None

    def _large_enough(self) -> bool:
        """Whether another set would take too much memory."""
        too_large = self._memory.used > self._times * POOL.max_bytes
        return len(self.sets) >= POOL.least_sets and too_large

    def _add_copies(self, task: Task) -> None:
        """Adds copies of the drawn sets, as many as short calls need to fill a block."""
        drawn, wanted = len(self.sets), self._times * POOL.most_sets
        while len(self.sets) < wanted and self._memory.used < self._times * POOL.most_bytes:
            inputs = self._values[len(self.sets) % drawn]
            try:
                copy = place(self._memory, task, inputs, self._workload.dims, guarded=False)
            except MemoryFullError:
                return
            self.sets.append(copy)

    def _draw_again(self, calls: int) -> None:
        """Draws new inputs for the first `calls` sets."""
        for index in range(calls):
            seed = self._rng.getrandbits(48)
            inputs = make_inputs(self._problem, self._workload, seed, self._where)
            for name, column in self._columns.items():
                value = inputs[name]
                assert isinstance(value, torch.Tensor)
                column.replace(index, value)

    def _rotation(self, name: str) -> _Rotation:
        """Returns how an input can be rotated."""
        value = self._values[0][name]
        assert isinstance(value, torch.Tensor)
        if not (self._problem.exchangeable and value.is_floating_point()):
            return _Rotation(value.numel(), 0)
        constant = self._workload.distribution == "constant_rows" and bool(
            (value == value[..., :1]).all()
        )
        return _Rotation(value.numel(), value.shape[-1] if constant else 1)

    def _column(self, name: str) -> _Column:
        """Moves an input's values out of the sets, which keep its shape, into a column."""
        rotation = self._rotation(name)
        tensors = [inputs[name] for inputs in self._values]
        values = [value for value in tensors if isinstance(value, torch.Tensor)]
        pieces = [placed.pieces[name] for placed in self.sets]
        column = _Column(self._memory, values, pieces, rotation)
        for inputs in self._values:
            inputs[name] = column.like
        return column


@dataclass(frozen=True)
class _Rotation:
    """By which offsets the elements of an input may be rotated."""

    elements: int
    """The number of elements of the input."""
    step: int
    """Offsets are multiples of this many elements; 0 if the input is not rotated."""

    @property
    def moves(self) -> bool:
        """Whether there is more than one offset."""
        return 0 < self.step < self.elements

    def draw(self, rng: random.Random) -> int:
        """Draws an offset."""
        return self.step * rng.randrange(self.elements // self.step) if self.moves else 0


class _Column:
    """One input of all sets: the judge's copy of its values, and its pieces in the memory.

    Args:
        memory: The shared memory.
        values: The drawn values. Sets beyond these have rotated copies of them.
        pieces: The piece in each set.
        rotation: How the elements may be rotated.
    """

    def __init__(
        self,
        memory: InputMemory,
        values: Sequence[torch.Tensor],
        pieces: Sequence[ArenaPiece],
        rotation: _Rotation,
    ) -> None:
        self.pieces, self._rotation = pieces, rotation
        first = values[0]
        self.like = torch.empty_strided(
            first.shape, first.stride(), dtype=first.dtype, device="meta"
        )
        word = _WORDS[self.like.itemsize]
        self._values = torch.stack([storage_bytes(value).view(word) for value in values])
        """Whole storages, since inputs of recorded calls may have gaps."""
        self._there = memory.rows(pieces, word)
        self._offsets = [0] * math.ceil(len(pieces) / len(values))
        """The offset of each group of sets. A group has one set for each drawn value."""

    @property
    def moves(self) -> bool:
        """Whether the input is rotated."""
        return self._rotation.moves

    def draw(self, rng: random.Random) -> None:
        """Draws the next offsets."""
        self._offsets = [self._rotation.draw(rng) for _ in self._offsets]

    def replace(self, index: int, value: torch.Tensor) -> None:
        """Replaces a drawn value."""
        self._values[index] = storage_bytes(value).view(self._values.dtype)

    def put(self, count: int) -> None:
        """Writes the first `count` sets into the memory, rotated by the offsets."""
        size = len(self._values)
        for start, offset in zip(range(0, count, size), self._offsets, strict=False):
            there = self._there[start : min(start + size, count)]
            values, left = self._values[: len(there)], self._values.shape[1] - offset
            there[:, :left].copy_(values[:, offset:])
            there[:, left:].copy_(values[:, :offset])

    def values(self, index: int) -> torch.Tensor:
        """Returns the values that were last written into a set."""
        group, drawn = divmod(index, len(self._values))
        moved = self._values[drawn].roll(-self._offsets[group])
        return moved.view(self.like.dtype).as_strided(self.like.shape, self.like.stride())
