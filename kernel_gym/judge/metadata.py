"""Is what came back the right kind of thing? Exact count, dtype, shape and device (rule 6)."""

from __future__ import annotations

from kernel_gym.devices.base import Call
from kernel_gym.tasks.problem import Problem


def check_metadata(problem: Problem, call: Call) -> str:
    """What is wrong with the outputs' metadata or the inputs afterwards; empty when nothing."""
    if call.modified_inputs:
        return f"the candidate wrote to its input {call.modified_inputs[0]!r}"
    if len(call.outputs) != len(problem.outputs):
        return f"found {len(call.outputs)} outputs, expected {len(problem.outputs)}"
    for output, returned in zip(problem.outputs, call.outputs, strict=True):
        if returned.tensor is None:
            return f"output {output.name!r}: {returned.problem}"
    return ""
