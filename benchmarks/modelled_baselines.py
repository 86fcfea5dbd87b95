"""The modelled head-room over PyTorch: a model of its operators beside the roofline."""

from __future__ import annotations

from kernel_gym.admission.values import SEED
from kernel_gym.analysis.summary import geometric_mean
from kernel_gym.hardware import DeviceSpec
from kernel_gym.judge.timing.torch_model import reference_seconds
from kernel_gym.tasks.problem import Problem, Scale
from kernel_gym.tasks.sampling import make_inputs, train_workloads


def modelled_head_room(problem: Problem, spec: DeviceSpec) -> float | None:
    """The geometric mean over the small train workloads, PyTorch by its model."""
    ratios = []
    for workload in train_workloads(problem, Scale.SIM):
        seconds = reference_seconds(problem, make_inputs(problem, workload, SEED), spec)
        dims = workload.dims
        kinds = problem.dtypes_at(dims)
        roofline = spec.roofline_seconds(problem.bytes(dims), problem.flops(dims), *kinds)
        ratios.append(seconds / (roofline + spec.shortest_kernel_seconds))
    return geometric_mean(ratios)
