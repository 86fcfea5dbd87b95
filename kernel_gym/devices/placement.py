"""The memory of tensors of calls: bytes of inputs, and the form of outputs."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from kernel_gym.tasks.problem import Problem, TensorArg
from kernel_gym.tasks.task import Task


def sketched_outputs(problem: Problem, dims: Mapping[str, int]) -> dict[str, torch.Tensor]:
    """Returns tensors without memory that have the shapes and dtypes of the outputs, by name."""
    shapes = problem.output_shapes(dims)
    return {
        output.name: torch.empty(shapes[output.name], dtype=output.dtype, device="meta")
        for output in problem.outputs_at(dims)
    }


def storage_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the bytes of a tensor's whole storage, uint8 [bytes]."""
    storage = tensor.untyped_storage()
    empty = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    return empty.set_(storage, 0, (storage.nbytes(),), (1,))


def in_place_inputs(task: Task) -> frozenset[str]:
    """Returns the names of inputs that a candidate may overwrite."""
    args = task.problem.args
    return frozenset(a.name for a in args if isinstance(a, TensorArg) and a.in_place)
