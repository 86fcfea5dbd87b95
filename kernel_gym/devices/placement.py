"""The inputs and outputs of calls in memory that the judge and a worker share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from kernel_gym.protocol.worker import ArenaArguments, ArenaTensor, Scalar
from kernel_gym.tasks.problem import Problem, TensorArg, Value
from kernel_gym.tasks.task import Task


@dataclass(frozen=True)
class ArenaPiece:
    """A part of the shared memory. Positions and sizes are in bytes."""

    start: int
    size: int
    label: str

    @property
    def end(self) -> int:
        """The position after the last byte."""
        return self.start + self.size


class MemoryFullError(Exception):
    """A workload does not fit the shared memory."""


class InputMemory(Protocol):
    """Memory on a device that the judge fills and a worker reads."""

    @property
    def coherent(self) -> bool:
        """Whether both sides see the same bytes. Otherwise each side has a copy."""

    size: int
    """The number of bytes."""

    @property
    def used(self) -> int:
        """The number of bytes in use."""

    def reset(self) -> None:
        """Releases all pieces and poisons their bytes."""

    def take(self, size: int, label: str, guarded: bool = True) -> ArenaPiece:
        """Allocates the next piece.

        Args:
            size: Bytes.
            label: A name for error messages.
            guarded: Poison the piece and put canaries around it. Otherwise its bytes stay.

        Raises:
            MemoryFullError: There is no room.
        """

    def view(self, piece: ArenaPiece) -> torch.Tensor:
        """Returns the bytes of a piece, uint8 [size]."""

    def rows(self, pieces: Sequence[ArenaPiece], dtype: torch.dtype) -> torch.Tensor:
        """Returns evenly spaced pieces of one size as a tensor [pieces, elements]; at least two."""

    def poison(self, pieces: Iterable[ArenaPiece]) -> None:
        """Overwrites pieces with a pattern that is NaN in every float format."""


@dataclass(frozen=True)
class Placed:
    """The inputs and outputs of one call in the shared memory."""

    inputs: Mapping[str, Value]
    pieces: Mapping[str, ArenaPiece]
    outputs: tuple[ArenaPiece, ...]


def place(
    memory: InputMemory,
    task: Task,
    inputs: Mapping[str, Value],
    dims: Mapping[str, int],
    guarded: bool = True,
    outputs: bool = True,
) -> Placed:
    """Copies inputs into the shared memory and allocates room for the outputs.

    Args:
        memory: The shared memory.
        task: The task, which states the outputs.
        inputs: The arguments of the call, by name.
        dims: The dimensions of the call.
        guarded: Poison the outputs and put canaries around each piece.
        outputs: Whether the task states the outputs.

    Raises:
        MemoryFullError: They do not fit.
    """
    pieces = {}
    for name, value in inputs.items():
        if isinstance(value, torch.Tensor):
            bytes_ = storage_bytes(value)
            pieces[name] = memory.take(bytes_.numel(), f"input {name!r}", guarded)
            memory.view(pieces[name]).copy_(bytes_)
    likes = sketched_outputs(task.problem, dims) if outputs else {}
    places = [memory.take(like.nbytes, f"output {name!r}", guarded) for name, like in likes.items()]
    return Placed(inputs, pieces, tuple(places))


def sketched_outputs(problem: Problem, dims: Mapping[str, int]) -> dict[str, torch.Tensor]:
    """Returns tensors without memory that have the shapes and dtypes of the outputs, by name."""
    shapes = problem.output_shapes(dims)
    return {
        output.name: torch.empty(shapes[output.name], dtype=output.dtype, device="meta")
        for output in problem.outputs_at(dims)
    }


def arguments(
    problem: Problem, placed: Placed, dims: Mapping[str, int], outputs: bool
) -> ArenaArguments:
    """Describes the arguments of a call for a message to the worker.

    Args:
        problem: The problem that the call solves.
        placed: The inputs and outputs in memory.
        dims: The dimensions of the call.
        outputs: Add outputs and sizes after the inputs, as C launchers expect them.
    """
    args: ArenaArguments = [
        describe(placed.pieces[name], value) if isinstance(value, torch.Tensor) else Scalar(value)
        for name, value in placed.inputs.items()
    ]
    if not outputs:
        return args
    likes = sketched_outputs(problem, dims).values()
    args += map(describe, placed.outputs, likes)
    return args + [Scalar(size) for size in problem.c_sizes(dims).values()]


def describe(piece: ArenaPiece, tensor: torch.Tensor) -> ArenaTensor:
    """Describes a tensor in the memory: its piece in bytes, and its elements within the piece."""
    return ArenaTensor(
        piece.start,
        piece.size,
        int(tensor.storage_offset()),
        tuple(tensor.shape),
        tuple(tensor.stride()),
        tensor.dtype,
    )


def storage_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the bytes of a tensor's whole storage, uint8 [bytes]."""
    storage = tensor.untyped_storage()
    empty = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    return empty.set_(storage, 0, (storage.nbytes(),), (1,))


def in_place_inputs(task: Task) -> frozenset[str]:
    """Returns the names of inputs that a candidate may overwrite."""
    args = task.problem.args
    return frozenset(a.name for a in args if isinstance(a, TensorArg) and a.in_place)
