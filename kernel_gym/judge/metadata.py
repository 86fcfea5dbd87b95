"""Is what came back the right kind of thing? Exact count, dtype, shape and device (rule 6)."""

from __future__ import annotations

from kernel_gym.devices.base import Call
from kernel_gym.tasks.problem import Problem
from kernel_gym.tasks.workload import Workload


def check_metadata(problem: Problem, workload: Workload, call: Call) -> str:
    """What is wrong with the outputs' metadata or the inputs afterwards; empty when nothing."""
    if call.modified_inputs:
        return f"the candidate wrote to its input {call.modified_inputs[0]!r}"
    if len(call.outputs) != len(problem.outputs):
        return f"found {len(call.outputs)} outputs, expected {len(problem.outputs)}"
    shapes = problem.output_shapes(workload.dims)
    for output, found in zip(problem.outputs, call.outputs, strict=True):
        if found.tensor is None:
            return f"output {output.name!r}: found {found.problem}, expected a device tensor"
        shape = tuple(shapes[output.name])
        if tuple(found.tensor.shape) != shape:
            return (
                f"output {output.name!r}: found shape {tuple(found.tensor.shape)}, expected {shape}"
            )
        if found.tensor.dtype != output.dtype:
            return f"output {output.name!r}: found {found.tensor.dtype}, expected {output.dtype}"
        if not found.tensor.is_contiguous():
            strides = found.tensor.stride()
            return f"output {output.name!r}: found strides {strides}, expected contiguous"
    return ""
