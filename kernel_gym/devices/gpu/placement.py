"""One call's inputs and outputs in the memory that judge and worker share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from kernel_gym.devices.gpu.arena import Arena, Piece
from kernel_gym.protocol.worker import ArenaArguments, ArenaTensor, Scalar
from kernel_gym.tasks.problem import Problem, Value
from kernel_gym.tasks.task import Task


@dataclass(frozen=True)
class Placed:
    """The inputs and outputs of one call in the arena."""

    inputs: Mapping[str, Value]
    pieces: Mapping[str, Piece]
    outputs: tuple[Piece, ...]


def place(
    arena: Arena,
    task: Task,
    inputs: Mapping[str, Value],
    dims: Mapping[str, int],
    guarded: bool = True,
) -> Placed:
    """Copies the inputs into the arena and makes room for the outputs.

    Args:
        arena: where to.
        task: whose outputs.
        inputs: of the call.
        dims: of the call.
        guarded: the outputs are poisoned, and canaries lie around each piece.

    Raises:
        ArenaFull: they do not fit.
    """
    pieces = {}
    for name, value in inputs.items():
        if isinstance(value, torch.Tensor):
            bytes_ = storage_bytes(value)
            pieces[name] = arena.take(bytes_.numel(), f"input {name!r}", guarded)
            arena.view(pieces[name]).copy_(bytes_)
    shapes = task.problem.output_shapes(dims)
    outputs = []
    for output in task.problem.outputs:
        like = torch.empty(shapes[output.name], dtype=output.dtype, device="meta")
        outputs.append(arena.take(like.nbytes, f"output {output.name!r}", guarded))
    return Placed(inputs, pieces, tuple(outputs))


def arguments(
    problem: Problem, placed: Placed, dims: Mapping[str, int], outputs: bool
) -> ArenaArguments:
    """The arguments of a call in the worker's terms.

    Args:
        problem: whose call it is.
        placed: inputs and outputs.
        dims: of the call.
        outputs: outputs and sizes follow the inputs, as C launchers take them.
    """
    args: ArenaArguments = [
        describe(placed.pieces[name], value) if isinstance(value, torch.Tensor) else Scalar(value)
        for name, value in placed.inputs.items()
    ]
    if not outputs:
        return args
    shapes = problem.output_shapes(dims)
    for output, piece in zip(problem.outputs, placed.outputs, strict=True):
        like = torch.empty(shapes[output.name], dtype=output.dtype, device="meta")
        args.append(describe(piece, like))
    return args + [Scalar(size) for size in problem.c_sizes(dims).values()]


def describe(piece: Piece, tensor: torch.Tensor) -> ArenaTensor:
    """Describes a tensor whose storage is a piece of the arena."""
    return ArenaTensor(
        piece.start,
        piece.size,
        int(tensor.storage_offset()),
        tuple(tensor.shape),
        tuple(tensor.stride()),
        tensor.dtype,
    )


def storage_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of a tensor's whole storage, uint8."""
    storage = tensor.untyped_storage()
    empty = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    return empty.set_(storage, 0, (storage.nbytes(),), (1,))
