"""Data for host code that tunes itself: of the shapes of a call, and never that of the call."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from kernel_gym.devices.placement import storage_bytes
from kernel_gym.tasks.expanded import assign
from kernel_gym.tasks.problem import Problem, Value
from kernel_gym.tasks.sampling import make_inputs
from kernel_gym.tasks.workload import Kind, Split, Workload

TUNING_SEED = 0
"""Seed of the data. Everybody may know it: a choice between kernels is no verdict."""


def tuning_inputs(
    problem: Problem, inputs: Mapping[str, Value], dims: Mapping[str, int]
) -> dict[str, Value]:
    """Returns data of a problem's usual distribution in the layout of the inputs of a call.

    Args:
        problem: The problem, which states its workloads by sizes.
        inputs: The inputs of the call. Their scalars are kept, as a plan holds them.
        dims: The dimensions of the call.

    Returns:
        The arguments by name, in the order of the inputs. A drawn tensor of another form is left
        out, and the one of the call stands in its place: its form depends on values.
    """
    scalars = {arg.name: inputs[arg.name] for arg in problem.declared}
    workload = Workload(
        dims,
        Split.TRAIN,
        Kind.TRAIN,
        distribution=problem.distributions[0],
        scalars=scalars,  # type: ignore[arg-type]
    )
    drawn = make_inputs(problem, workload, TUNING_SEED)
    return {name: _in_layout(drawn.get(name), value) for name, value in inputs.items()}


def _in_layout(drawn: Value | None, given: Value) -> Value:
    if not isinstance(given, torch.Tensor) or not isinstance(drawn, torch.Tensor):
        return given
    if drawn.shape != given.shape or drawn.dtype != given.dtype:
        return given
    memory = torch.zeros_like(storage_bytes(given)).view(given.dtype)
    view = memory.as_strided(given.shape, given.stride(), given.storage_offset())
    return assign(view, drawn)
