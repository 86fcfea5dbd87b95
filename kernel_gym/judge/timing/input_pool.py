"""The input sets of timed calls: as many as are worth it, in another order before each block.

Both sides hold the same sets at the same addresses. Before each of the candidate's blocks the
elements of each floating input move on by an offset that is drawn anew, all of them around: what a
kernel has kept of earlier blocks is wrong then, whether it finds it by address, by a sample of the
input or by comparing all of it. Rows that are constant move as a whole: of two constants a long sum
in fp32 errs more than of any data on the menu.
"""

from __future__ import annotations

import random
from typing import Any

import torch

from kernel_gym.devices.base import Failed, InfraError
from kernel_gym.devices.gpu.arena import Arena, ArenaFull, Piece
from kernel_gym.devices.gpu.outputs import in_place
from kernel_gym.devices.gpu.placement import Placed, place
from kernel_gym.judge.attempt import Verdict
from kernel_gym.judge.protocol import RING, RING_BYTES, RING_LEAST, RING_SHORT, SMALL_SET
from kernel_gym.judge.timing.deferred_checks import Kept
from kernel_gym.records import Outcome
from kernel_gym.tasks.problem import Value
from kernel_gym.tasks.sampling import make_inputs
from kernel_gym.tasks.task import Task
from kernel_gym.tasks.workload import Workload

_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Types by which elements are moved whatever they mean."""


class Ring:
    """The sets of one workload.

    Args:
        task: what is timed.
        workload: its sizes; inputs of timed workloads are contiguous.
        seed: of the data and of what is drawn.
        arena: where the sets lie.
        where: the device.
        most: how many there are at most; 0 for as many as are worth it.
        times: so many times as many are worth it.

    Raises:
        InfraError: two of them do not fit.
    """

    def __init__(
        self,
        task: Task,
        workload: Workload,
        seed: int,
        arena: Arena,
        where: torch.device,
        most: int = 0,
        times: int = 1,
    ) -> None:
        self._times = times
        self._problem, self._workload, self._arena = task.problem, workload, arena
        self._rng = random.Random(seed)
        self._values: list[dict[str, Value]] = []
        self.sets: list[Placed] = []
        arena.reset()
        wanted = most or times * RING
        while len(self.sets) < wanted and not self._enough():
            inputs = make_inputs(task.problem, workload, seed + len(self.sets), where)
            try:
                self.sets.append(place(arena, task, inputs, workload.dims, guarded=False))
            except ArenaFull:
                break
            self._values.append(inputs)
            if not most and len(self.sets) == 1 and arena.used < SMALL_SET:
                wanted = times * RING_SHORT
        if len(self.sets) < 2:
            raise InfraError(f"two input sets of {workload} do not fit the arena")
        self._restored = in_place(task)
        self._nothing = torch.zeros(1, device=where)
        self._columns = {name: self._take(name) for name in self.sets[0].pieces}
        self._intact = 0
        """Sets, counted from the first, that the candidate cannot have changed since."""

    @property
    def in_place(self) -> bool:
        """Whether calls overwrite inputs, so that they cannot be repeated as they are."""
        return bool(self._restored)

    def prepare(self, session: Any, calls: int, fresh: bool) -> None:
        """Before a block: inputs are as they were, in another order if it is the candidate's.

        The candidate can write the memory of all inputs, so that those of a baseline's block are
        written anew after every block of the candidate. Both sides' blocks follow work of the
        judge: to take the GPU from another process takes time that no stamp accounts for.

        Args:
            session: whose block it is.
            calls: of how many it is; it uses as many sets.
            fresh: it is the candidate's: outputs are poisoned, and the elements of floating inputs
                have moved.
        """
        self._nothing.zero_()
        if fresh:
            session.poison(self.sets)
        shared = self._arena.file is None
        damaged = shared and not fresh and calls > self._intact
        for name, column in self._columns.items():
            moved = fresh and column.moves
            if moved:
                column.draw(self._rng)
            if moved or damaged or name in self._restored:
                column.put(calls)
                session.changed(column.pieces[:calls])
        self._intact = 0 if fresh else max(calls, self._intact)

    def verify(self, candidate: Any, calls: int, kept: Kept) -> Verdict | Failed | None:
        """Keeps the outputs of a timed call drawn at random (rule 17)."""
        index = self._rng.randrange(calls)
        placed = self.sets[index]
        failed = candidate.read(index, calls, placed)
        if failed is not None:
            return failed
        shapes = self._problem.output_shapes(self._workload.dims)
        outputs = tuple(
            self._arena.view(piece).view(output.dtype).view(shapes[output.name])
            for output, piece in zip(self._problem.outputs, placed.outputs, strict=True)
        )
        moved = {name: column.values(index) for name, column in self._columns.items()}
        kept.add(self._problem, self._workload, {**placed.inputs, **moved}, outputs)
        wrong = kept.check() if kept.full else ""
        return Verdict(Outcome.WRONG_VALUES, wrong) if wrong else None

    def _enough(self) -> bool:
        """Whether further sets would take more memory than they are worth."""
        return len(self.sets) >= RING_LEAST and self._arena.used > self._times * RING_BYTES

    def _step(self, name: str) -> int:
        """By multiples of how many elements an input moves; 0 for one that stays."""
        value = self._values[0][name]
        assert isinstance(value, torch.Tensor)
        if not (self._problem.exchangeable and value.is_floating_point() and value.numel() > 1):
            return 0
        constant = self._workload.distribution == "constant_rows" and bool(
            (value == value[..., :1]).all()
        )
        return value.shape[-1] if constant else 1

    def _take(self, name: str) -> _Column:
        """Takes an input's values out of the sets, which keep its shape; the judge's own copy."""
        values = [inputs[name] for inputs in self._values]
        pieces = [placed.pieces[name] for placed in self.sets]
        found = _Column(self._arena, values, pieces, self._step(name))
        for inputs in self._values:
            inputs[name] = found.like
        return found


class _Column:
    """One input of all sets: the judge's values, and where they lie in the arena, [sets, n].

    Args:
        arena: where.
        values: of each set.
        pieces: of each set.
        step: its elements move by multiples of this; 0 when they stay.
    """

    def __init__(self, arena: Arena, values: list[Any], pieces: list[Piece], step: int) -> None:
        self.pieces, self._step = pieces, step
        self.like = torch.empty_like(values[0], device="meta")
        word = _WORDS[self.like.itemsize]
        self._values = torch.stack([value.view(-1).view(word) for value in values])
        self._there = arena.rows(pieces, word)
        self._offset = 0

    @property
    def moves(self) -> bool:
        """Whether its elements move."""
        return self._step > 0

    def draw(self, rng: random.Random) -> None:
        """Draws by how much the elements move on."""
        if self._step:
            self._offset = self._step * rng.randrange(self.like.numel() // self._step)

    def put(self, count: int) -> None:
        """Writes the first sets into the arena, each around its offset."""
        left = self.like.numel() - self._offset
        self._there[:count, :left].copy_(self._values[:count, self._offset :])
        self._there[:count, left:].copy_(self._values[:count, : self._offset])

    def values(self, index: int) -> torch.Tensor:
        """What was written of one set."""
        moved = self._values[index].roll(-self._offset)
        return moved.view(self.like.dtype).view(self.like.shape)
