"""Facts about recorded problems that files in the formats of suites hold."""

from __future__ import annotations

import torch

from kernel_gym.imports.readers.halves import SEPARATOR
from kernel_gym.imports.recorded.problem import CALL, RecordedProblem, shape_at
from kernel_gym.tasks.problem import Dims, Problem


def file_with(problem: Problem, pristine: str, source: str) -> str | None:
    """Returns a suite's file with a candidate in the place of its kernel.

    Args:
        problem: The problem of an imported task.
        pristine: The text of the file.
        source: The candidate. If the file holds the tests as well, only its kernels are taken.

    Returns:
        The text, or None if a candidate is no file of the suite, as for PyTorch modules.
    """
    if not isinstance(problem, RecordedProblem):
        return None
    splice = problem.origin.splice
    if splice is None:
        return source
    _, mark, tests = pristine.partition(f"\n{SEPARATOR}\n")
    return splice(source) + mark + tests


def tensors_at(problem: Problem, dims: Dims) -> list[tuple[tuple[int, ...], torch.dtype]] | None:
    """Returns shape and dtype of each tensor argument of a recorded call; None of another problem.

    Args:
        problem: The problem of an imported task.
        dims: The dimensions of a workload.
    """
    if not isinstance(problem, RecordedProblem):
        return None
    template = problem.templates[dims[CALL]]
    shapes = [shape_at(shape, dims) for shape in template.shapes]
    dtypes = [form.type for form in template.call.tensors]
    return list(zip(shapes, dtypes, strict=True))
