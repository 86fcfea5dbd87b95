"""Checks that a plan points only at what it has, within its bounds and while it lives."""

from __future__ import annotations

import math
from typing import TypeVar

from kernel_gym.plans import limits
from kernel_gym.plans.addresses import stray_addresses
from kernel_gym.plans.code import check_code
from kernel_gym.plans.operators import operator_tensors
from kernel_gym.plans.reading import BadPlanError
from kernel_gym.plans.types import (
    ELEMENT_BYTES,
    BufferReference,
    BufferRole,
    BufferView,
    CopyStep,
    FillStep,
    LaunchPlan,
    LaunchStep,
    PlanBuffer,
    PlanStep,
    ReadStep,
    TorchOperatorStep,
    UploadStep,
    WrongOutput,
)

Item = TypeVar("Item")


def check_plan(plan: LaunchPlan) -> None:
    """Checks all numbers of a plan against each other.

    Raises:
        BadPlanError: One points at nothing, outside, or at a buffer that does not live then.
    """
    _Check(plan).all()


class _Check:
    def __init__(self, plan: LaunchPlan) -> None:
        self._plan = plan
        self._references = 0

    def all(self) -> None:
        for number, code in enumerate(self._plan.codes):
            check_code(code, f"code {number}")
        for number, kernel in enumerate(self._plan.kernels):
            _within(kernel.code, self._plan.codes, f"the code of kernel {number}")
        self._buffers()
        for number, step in enumerate(self._plan.steps):
            self._step(number, step)
        last = len(self._plan.steps)
        for number, output in enumerate(self._plan.outputs):
            if not isinstance(output, WrongOutput):
                self._view(output, last, f"output {number}")

    def _step(self, number: int, step: PlanStep) -> None:
        if isinstance(step, LaunchStep):
            self._launch(number, step)
        elif isinstance(step, UploadStep):
            self._upload(number, step)
        elif isinstance(step, FillStep):
            self._fill(number, step)
        elif isinstance(step, TorchOperatorStep):
            self._operator(number, step)
        elif isinstance(step, ReadStep):
            self._read(number, step)
        else:
            self._copy(number, step)

    def _buffers(self) -> None:
        total, seen = 0, set()
        for number, buffer in enumerate(self._plan.buffers):
            total += buffer.size
            self._buffer(buffer, f"buffer {number}")
            if buffer.role in (BufferRole.INPUT, BufferRole.OUTPUT):
                if buffer.number in seen:
                    raise BadPlanError(f"buffer {number} is argument {buffer.number} again")
                seen.add(buffer.number)
        if total > limits.MAX_MEMORY_BYTES:
            raise BadPlanError(f"{total} bytes of buffers, expected {limits.MAX_MEMORY_BYTES}")

    def _buffer(self, buffer: PlanBuffer, what: str) -> None:
        last = len(self._plan.steps)
        end = last if buffer.end is None else buffer.end
        if not buffer.begin <= end <= last:
            raise BadPlanError(
                f"{what} lives from step {buffer.begin} to {end}, expected 0 to {last}"
            )
        if buffer.role is not BufferRole.SCRATCH and (buffer.begin or buffer.end is not None):
            raise BadPlanError(f"{what} is an {buffer.role}, which lives as long as the call")
        is_variable = buffer.role is BufferRole.VARIABLE
        if is_variable != (buffer.code is not None) or is_variable != bool(buffer.symbol):
            raise BadPlanError(f"{what} is an {buffer.role} with code {buffer.code}")
        if buffer.code is not None:
            _within(buffer.code, self._plan.codes, f"the code of {what}")

    def _launch(self, number: int, step: LaunchStep) -> None:
        what = f"step {number}"
        _within(step.kernel, self._plan.kernels, f"the kernel of {what}")
        if math.prod(step.grid) > limits.MAX_GRID:
            raise BadPlanError(f"{what} has the grid {step.grid}, expected {limits.MAX_GRID}")
        if math.prod(step.block) > limits.MAX_BLOCK_THREADS:
            raise BadPlanError(f"{what} has {math.prod(step.block)} threads in a block")
        size = sum(len(argument.data) for argument in step.arguments)
        if size > limits.MAX_ARGUMENTS_BYTES:
            raise BadPlanError(f"{what} has arguments of {size} bytes")
        for index, argument in enumerate(step.arguments):
            place = f"argument {index} of {what}"
            self._data(argument.data, argument.references, number, place)
            if stray := stray_addresses(argument.data):
                raise BadPlanError(f"{place} holds an address at byte {stray[0]}, not a reference")

    def _upload(self, number: int, step: UploadStep) -> None:
        what = f"the constant of step {number}"
        buffer = self._live(step.buffer, number, f"step {number}")
        if step.offset + len(step.data) > buffer.size:
            raise BadPlanError(f"{what} does not lie within buffer {step.buffer}")
        self._data(step.data, step.references, number, what)
        if any(at % 8 == 0 for at in stray_addresses(step.data)):
            raise BadPlanError(f"{what} holds an address that is not a reference")

    def _fill(self, number: int, step: FillStep) -> None:
        self._view(step.target, number, f"the target of step {number}", written=True)
        if len(step.pattern) != ELEMENT_BYTES[step.target.dtype]:
            raise BadPlanError(f"step {number} fills {step.target.dtype} by other elements")

    def _copy(self, number: int, step: CopyStep) -> None:
        self._view(step.source, number, f"the source of step {number}")
        self._view(step.target, number, f"the target of step {number}", written=True)
        if (step.source.shape, step.source.dtype) != (step.target.shape, step.target.dtype):
            raise BadPlanError(f"step {number} copies between tensors of different form")

    def _operator(self, number: int, step: TorchOperatorStep) -> None:
        what = f"step {number}"
        if operator_tensors(step.arguments) != list(range(len(step.tensors))):
            raise BadPlanError(f"the arguments of {what} do not name each of its tensors once")
        for index, tensor in enumerate(step.tensors):
            self._view(tensor, number, f"tensor {index} of {what}")
        if step.results is None and number + 1 < len(self._plan.steps):
            raise BadPlanError(f"{what} is not the last one, and its results have no place")
        for index, tensor in enumerate(step.results or ()):
            self._view(tensor, number, f"result {index} of {what}", written=True)

    def _read(self, number: int, step: ReadStep) -> None:
        self._view(step.source, number, f"the source of step {number}")
        if len(step.data) != step.source.nbytes:
            raise BadPlanError(
                f"step {number} has read {len(step.data)} bytes, expected {step.source.nbytes}"
            )

    def _view(self, view: BufferView, step: int, what: str, written: bool = False) -> None:
        buffer = self._live(view.buffer, step, what)
        if len(view.shape) != len(view.strides):
            raise BadPlanError(f"{what} has {len(view.shape)} axes, {len(view.strides)} strides")
        if view.offset + view.extent > buffer.size or view.nbytes > limits.MAX_MEMORY_BYTES:
            raise BadPlanError(
                f"{what} takes {view.extent} bytes from {view.offset} of buffer {view.buffer}, "
                f"which has {buffer.size}"
            )
        if written and view.repeats:
            raise BadPlanError(f"{what} writes to elements that share memory")

    def _data(
        self, data: bytes, references: tuple[BufferReference, ...], step: int, what: str
    ) -> None:
        self._references += len(references)
        if self._references > limits.MAX_REFERENCES:
            raise BadPlanError(f"more than {limits.MAX_REFERENCES} references")
        free = 0
        for reference in references:
            at = reference.at
            if at % 8 or at < free or at + 8 > len(data) or any(data[at : at + 8]):
                raise BadPlanError(f"{what} has no room for an address at byte {at}")
            free = at + 8
            buffer = self._live(reference.buffer, step, what)
            if reference.offset > buffer.size:
                raise BadPlanError(
                    f"{what} points to byte {reference.offset} of buffer {reference.buffer}, "
                    f"which has {buffer.size}"
                )

    def _live(self, number: int, step: int, what: str) -> PlanBuffer:
        buffer = _within(number, self._plan.buffers, f"the buffer of {what}")
        if not buffer.lives_at(step):
            raise BadPlanError(f"{what} uses buffer {number}, which is not allocated then")
        return buffer


def _within(number: int, items: tuple[Item, ...], what: str) -> Item:
    if number >= len(items):
        raise BadPlanError(f"{what} is number {number} of {len(items)}")
    return items[number]
