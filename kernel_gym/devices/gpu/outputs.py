"""Reads the results of a call from the memory that the judge and the worker share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from kernel_gym.devices.answers import (
    Said,
    StatedOutput,
    Wrong,
    believed_outputs,
    misplaced,
    parse_call,
    reading_an_answer,
    stated_outputs,
)
from kernel_gym.devices.base import Call, OutputTensor
from kernel_gym.devices.gpu.arena import GpuArena
from kernel_gym.devices.placement import ArenaPiece, Placed, in_place_inputs, storage_bytes
from kernel_gym.tasks.task import Task


def read_call(
    arena: GpuArena,
    task: Task,
    answer: Mapping[str, Any],
    placed: Placed,
    dims: Mapping[str, int],
    believed: bool = False,
) -> Call:
    """Reads the outputs of a call, and checks which inputs it changed.

    Args:
        arena: The shared memory.
        task: The task that is solved.
        answer: The worker's answer.
        placed: The call's inputs, and the pieces where the judge asked for its outputs.
        dims: The dimensions of the workload.
        believed: The outputs are those that the worker states: of a suite's own code only.

    Raises:
        BadAnswerError: The answer cannot be read.
    """
    with reading_an_answer():
        stated = believed_outputs(answer) if believed else stated_outputs(task.problem, dims)
        said = parse_call(answer, stated)
        return Call(
            outputs=tuple(_outputs(arena, task, said.outputs, stated, placed)),
            seconds=0.0,
            launches=said.launches,
            modified_inputs=modified_inputs(arena, task, placed),
            refused=said.refused,
            operators=said.operators,
        )


def _outputs(
    arena: GpuArena,
    task: Task,
    said: Sequence[Said | Wrong],
    stated: Sequence[StatedOutput],
    placed: Placed,
) -> Iterator[OutputTensor]:
    if len(said) != len(stated):
        yield from (OutputTensor(None, one.problem) for one in said if isinstance(one, Wrong))
        return
    allowed = in_place_inputs(task)
    first = {name: _first_byte(placed, name) for name in allowed & placed.pieces.keys()}
    for one, expected, piece in zip(said, stated, placed.outputs, strict=True):
        wrong = "" if isinstance(one, Wrong) else misplaced(expected, one.start, first)
        if wrong:
            yield OutputTensor(None, wrong)
        else:
            yield _read(arena, one, expected, piece, _alias(one, placed, allowed))


def _read(
    arena: GpuArena, said: Said | Wrong, stated: StatedOutput, piece: ArenaPiece, alias: str
) -> OutputTensor:
    if isinstance(said, Wrong):
        return OutputTensor(None, said.problem)
    if alias:
        return OutputTensor(
            None, f"found a view of the input {alias!r}, expected a tensor of its own"
        )
    return OutputTensor(arena.view(piece).clone().view(stated.dtype).view(stated.shape))


def _first_byte(placed: Placed, name: str) -> int:
    """Returns where the first element of an input lies in the shared memory, in bytes."""
    value = placed.inputs[name]
    assert isinstance(value, torch.Tensor)
    return placed.pieces[name].start + int(value.storage_offset()) * value.itemsize


def modified_inputs(arena: GpuArena, task: Task, placed: Placed) -> tuple[str, ...]:
    """Returns the inputs whose bytes have changed, without those that may change."""
    changed = []
    for name, piece in placed.pieces.items():
        value = placed.inputs[name]
        assert isinstance(value, torch.Tensor)
        same = name in in_place_inputs(task) or torch.equal(arena.view(piece), storage_bytes(value))
        if not same:
            changed.append(name)
    return tuple(changed)


def _alias(said: Said | Wrong, placed: Placed, allowed: frozenset[str]) -> str:
    if isinstance(said, Wrong):
        return ""
    for name, piece in placed.pieces.items():
        if piece.start <= said.start < piece.end and name not in allowed:
            return name
    return ""
