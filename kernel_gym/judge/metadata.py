"""Checks the number, dtype, shape and device of the outputs (rule 6)."""

from __future__ import annotations

from collections.abc import Sequence

from kernel_gym.devices.base import Call
from kernel_gym.tasks.problem import Output


def check_metadata(outputs: Sequence[Output], call: Call) -> str:
    """Describes wrong metadata of outputs, or inputs that were written; empty if all is right."""
    if call.modified_inputs:
        return f"the candidate wrote to its input {call.modified_inputs[0]!r}"
    if len(call.outputs) != len(outputs):
        return f"found {len(call.outputs)} outputs, expected {len(outputs)}"
    for output, returned in zip(outputs, call.outputs, strict=True):
        if returned.tensor is None:
            return f"output {output.name!r}: {returned.problem}"
    return ""
