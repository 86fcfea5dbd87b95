"""The form of a plan that a person reads: one line for each part, all of it inert text."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator

from kernel_gym.inert import inert_line
from kernel_gym.plans.types import (
    BufferReference,
    BufferRole,
    BufferView,
    CopyStep,
    FillStep,
    LaunchPlan,
    LaunchStep,
    PlanArgument,
    PlanBuffer,
    PlanKernel,
    PlanStep,
    ReadStep,
    TorchOperatorStep,
    WrongOutput,
)

_SHOWN_BYTES = 16
_MIN_FLOAT_BITS = 1 << 24
"""Numbers of four bytes from here on are shown as floats as well: few of them count anything."""


def plan_lines(plan: LaunchPlan) -> Iterator[str]:
    """Yields the lines of a plan: code, kernels, buffers, steps and outputs."""
    yield f"plan for {inert_line(plan.arch)}"
    for number, code in enumerate(plan.codes):
        digest = hashlib.sha256(code.content).hexdigest()[:12]
        yield f"code {number}: {code.form}, {len(code.content)} bytes, sha256 {digest}"
    for number, kernel in enumerate(plan.kernels):
        yield f"kernel {number}: {_kernel(kernel)}"
    for number, buffer in enumerate(plan.buffers):
        yield f"buffer {number}: {_buffer(buffer)}"
    for number, step in enumerate(plan.steps):
        yield f"step {number}: {step_text(plan, step)}"
    for number, output in enumerate(plan.outputs):
        text = inert_line(output.text) if isinstance(output, WrongOutput) else _view(output)
        yield f"output {number}: {text}"


def step_text(plan: LaunchPlan, step: PlanStep) -> str:
    """Returns one line about a step."""
    if isinstance(step, LaunchStep):
        name = inert_line(plan.kernels[step.kernel].name, 120)
        arguments = ", ".join(map(argument_text, step.arguments))
        shared = f", {step.shared} bytes of dynamic shared memory" if step.shared else ""
        sizes = f"grid {_product(step.grid)}, block {_product(step.block)}{shared}"
        return f"launch kernel {step.kernel} ({name}), {sizes}: {arguments}"
    if isinstance(step, FillStep):
        return f"fill {_view(step.target)} with {step.pattern.hex()}"
    if isinstance(step, CopyStep):
        return f"copy {_view(step.source)} to {_view(step.target)}"
    if isinstance(step, TorchOperatorStep):
        return _operator(step)
    if isinstance(step, ReadStep):
        shown = step.data[:_SHOWN_BYTES].hex()
        more = "..." if len(step.data) > _SHOWN_BYTES else ""
        return f"read {_view(step.source)} on the host: {shown}{more}"
    digest = hashlib.sha256(step.data).hexdigest()[:12]
    inside = "".join(
        f", at {reference.at} {_reference(reference)}" for reference in step.references
    )
    where = f"buffer {step.buffer} + {step.offset}"
    return f"write {len(step.data)} bytes, sha256 {digest}{inside}, to {where}"


def _operator(step: TorchOperatorStep) -> str:
    tensors = ", ".join(map(_view, step.tensors)) or "no tensors"
    results = ", ".join(map(_view, step.results or ())) or "no new tensor"
    told = ", whose form depends on values" if step.told else ""
    name = f"{inert_line(step.name, 80)}.{inert_line(step.overload, 80)}"
    arguments = inert_line(step.arguments, 400)
    return f"run {name} {arguments} on {tensors}: {results}{told}"


def argument_text(argument: PlanArgument) -> str:
    """Returns an argument in short: an address, a number, or the bytes of a struct."""
    if argument.references and len(argument.data) == 8:
        return _reference(argument.references[0])
    if argument.references or len(argument.data) > 8:
        inside = "".join(
            f", at {reference.at} {_reference(reference)}" for reference in argument.references
        )
        digits = argument.data[:_SHOWN_BYTES].hex()
        more = "..." if len(argument.data) > _SHOWN_BYTES else ""
        digest = hashlib.sha256(argument.data).hexdigest()[:12]
        return f"{len(argument.data)} bytes {digits}{more} sha256 {digest}{inside}"
    number = int.from_bytes(argument.data, "little", signed=True)
    as_float = ""
    if len(argument.data) == 4 and abs(number) >= _MIN_FLOAT_BITS:
        as_float = f" (float {struct.unpack('<f', argument.data)[0]:g})"
    return f"{number}:{len(argument.data)}{as_float}"


def _kernel(kernel: PlanKernel) -> str:
    shared = "" if kernel.shared is None else f", {kernel.shared} bytes of shared memory"
    return f"{inert_line(kernel.name, 120)} of code {kernel.code}{shared}"


def _buffer(buffer: PlanBuffer) -> str:
    if buffer.role is BufferRole.VARIABLE:
        origin = f"variable {inert_line(buffer.symbol, 120)} of code {buffer.code}"
    elif buffer.role is BufferRole.SCRATCH:
        end = "the end" if buffer.end is None else f"step {buffer.end}"
        origin = f"scratch from step {buffer.begin} to {end}"
    else:
        origin = f"{buffer.role} {buffer.number}"
    return f"{origin}, {buffer.size} bytes"


def _view(view: BufferView) -> str:
    sizes = f"{list(view.shape)} by {list(view.strides)}"
    return f"{view.dtype} {sizes} at buffer {view.buffer} + {view.offset}"


def _reference(reference: BufferReference) -> str:
    return f"buffer {reference.buffer} + {reference.offset}"


def _product(sizes: tuple[int, int, int]) -> str:
    return "x".join(map(str, sizes))
