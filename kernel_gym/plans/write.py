"""Writes a plan as JSON and two pieces of bytes, the form that `kernel_gym.plans.parse` reads."""

from __future__ import annotations

from collections.abc import Iterable

from kernel_gym.plans.parse import VERSION
from kernel_gym.plans.types import (
    BufferReference,
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


def write_plan(plan: LaunchPlan) -> tuple[dict[str, object], bytes, bytes]:
    """Returns the JSON object, all code objects and all constants of a plan."""
    header = {
        "version": VERSION,
        "arch": plan.arch,
        "codes": [{"form": str(code.form), "size": len(code.content)} for code in plan.codes],
        "kernels": [vars(kernel) for kernel in plan.kernels],
        "buffers": [_buffer(buffer) for buffer in plan.buffers],
        "steps": [write_step(step) for step in plan.steps],
        "outputs": [_output(output) for output in plan.outputs],
    }
    constants = (step.data for step in plan.steps if isinstance(step, UploadStep | ReadStep))
    return header, b"".join(code.content for code in plan.codes), b"".join(constants)


def _buffer(buffer: PlanBuffer) -> dict[str, object]:
    return vars(buffer) | {"role": str(buffer.role)}


def write_step(step: PlanStep) -> dict[str, object]:
    """Returns the JSON object of a step, without its constants."""
    if isinstance(step, LaunchStep):
        arguments = [
            {"data": argument.data.hex(), "references": _references(argument.references)}
            for argument in step.arguments
        ]
        sizes = {"grid": list(step.grid), "block": list(step.block), "shared": step.shared}
        launch = {"kernel": step.kernel, **sizes, "arguments": arguments}
        return {"do": "copying launch" if step.copies else "launch", **launch}
    if isinstance(step, FillStep):
        return {"do": "fill", "target": _view(step.target), "pattern": step.pattern.hex()}
    if isinstance(step, CopyStep):
        return {"do": "copy", "source": _view(step.source), "target": _view(step.target)}
    if isinstance(step, TorchOperatorStep):
        results = None if step.results is None else [_view(view) for view in step.results]
        tensors = [_view(view) for view in step.tensors]
        return {"do": "operator", **vars(step), "tensors": tensors, "results": results}
    if isinstance(step, ReadStep):
        return {"do": "read", "source": _view(step.source), "size": len(step.data)}
    return {
        "do": "upload",
        "buffer": step.buffer,
        "offset": step.offset,
        "size": len(step.data),
        "references": _references(step.references),
    }


def _view(view: BufferView) -> dict[str, object]:
    return vars(view) | {"shape": list(view.shape), "strides": list(view.strides)}


def _output(output: BufferView | WrongOutput) -> dict[str, object]:
    return {"wrong": output.text} if isinstance(output, WrongOutput) else _view(output)


def _references(references: Iterable[BufferReference]) -> list[list[int]]:
    return [[reference.at, reference.buffer, reference.offset] for reference in references]
