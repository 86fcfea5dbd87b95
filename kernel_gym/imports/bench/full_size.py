"""Whether the workloads of a traced problem fit the memory of a GPU, found without running them."""

from __future__ import annotations

import torch

from kernel_gym.admission.values import SEED
from kernel_gym.devices.description import DeviceDescription
from kernel_gym.imports.traced.exact import InDouble
from kernel_gym.imports.traced.memory import PeakMemory
from kernel_gym.imports.traced.problem import TracedProblem
from kernel_gym.tasks.problem import Dims, TensorArg
from kernel_gym.tasks.sampling import (
    adversarial_workloads,
    train_workloads,
    unseen_workloads,
)
from kernel_gym.tasks.shapes import shape_of
from kernel_gym.tasks.workload import Workload

TIMED_SETS = 2
"""Sets of inputs and outputs that a timed workload needs in the shared memory."""
CONTEXTS = 3 << 30
"""Bytes of the contexts of the judge and its workers, and of buffers."""
COMPARISON = 4
"""Results in fp64 that a comparison of values holds at a time."""


def too_large(problem: TracedProblem, device: DeviceDescription) -> str:
    """Returns which workload needs more memory than a device has; empty if all fit.

    Args:
        problem: The problem.
        device: The device, whose memory may have no limit.
    """
    if not device.total_memory:
        return ""
    scale = device.scale
    workloads = [
        *train_workloads(problem, scale),
        *adversarial_workloads(problem, scale, "triton"),
        *unseen_workloads(problem, scale, "triton", SEED),
    ]
    texts = (_too_large(problem, workload, device) for workload in workloads)
    return next((text for text in texts if text), "")


def _too_large(problem: TracedProblem, workload: Workload, device: DeviceDescription) -> str:
    sets = TIMED_SETS if workload.timed else 1
    shared = sets * problem.bytes(workload.dims)
    name = f"needs more memory than there is: {workload} takes"
    if shared > device.shared_memory:
        return (
            f"{name} {_gib(shared)} for {sets} sets of inputs and outputs, and workers share "
            f"{_gib(device.shared_memory)} (KERNEL_GYM_ARENA_GIB)"
        )
    needed = judged_bytes(problem, workload.dims)
    left = device.total_memory - device.shared_memory - CONTEXTS
    if needed > left:
        return f"{name} {_gib(needed)} in the judge beside shared memory, of {_gib(left)}"
    return ""


def judged_bytes(problem: TracedProblem, dims: Dims) -> int:
    """Returns about how many bytes the judge needs to check one call, without shared memory.

    It holds the inputs twice, runs the operators in fp64 and in the dtype of the task, and compares
    results in fp64.
    """
    inputs = {
        arg.name: torch.empty(shape_of(arg.shape, dims), dtype=arg.dtype, device="meta")
        for arg in problem.args
        if isinstance(arg, TensorArg)
    }
    with torch.no_grad():
        with PeakMemory() as wide, InDouble():
            exact = problem.oracle(**inputs)
        with PeakMemory() as plain:
            answer = problem.reference(**inputs)
    own, double, single = (
        sum(tensor.nbytes for tensor in tensors) for tensors in (inputs.values(), exact, answer)
    )
    compared = COMPARISON * double + 2 * single
    return 2 * own + max(wide.peak, double + plain.peak, compared)


def _gib(size: int) -> str:
    return f"{size / (1 << 30):.1f} GiB"
