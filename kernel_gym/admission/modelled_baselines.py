"""Holds the model of PyTorch operators against head-room that was measured on a GPU."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from scipy import stats

from kernel_gym.admission.values import SEED
from kernel_gym.analysis.summary import geometric_mean
from kernel_gym.hardware import DeviceSpec
from kernel_gym.judge.timing.torch_model import reference_seconds
from kernel_gym.tasks.problem import Problem, Scale
from kernel_gym.tasks.sampling import make_inputs, train_workloads
from kernel_gym.tasks.task import Mode

MEASURED = Path(__file__).with_name("measured_head_room.json")
"""Device, problem and mode to head-room at full sizes.

The H200's is from the verdicts of 2026-11-27, the H100's from `scripts/measure_head_room.py` on
2026-11-24. The rules of operators and the tasks of `tiny_gpu.toml` were made from the figures of
2026-11-22, which have an entry of their own.
"""


@dataclass(frozen=True)
class ComparedBaseline:
    """Head-room over PyTorch of one problem: time of PyTorch over roofline time with a launch.

    Attributes:
        problem: Its name.
        measured: On the GPU, at its workloads.
        modelled: On the simulated device, at its smaller workloads.
    """

    problem: str
    measured: float
    modelled: float


def measured_head_room(problem: str, device: str, mode: Mode) -> float | None:
    """The head-room of a mode that was measured on a device; None if there is none.

    The times of baselines hold beyond the verdicts that they were part of. These are renewed when
    content, protocol or rules change, so that the figures have a file of their own.
    """
    measured: dict[str, dict[str, dict[str, float]]] = json.loads(MEASURED.read_bytes())
    return measured.get(device, {}).get(problem, {}).get(mode)


def measured_devices() -> list[str]:
    """Returns the names of the GPUs that head-room was measured on."""
    return sorted(json.loads(MEASURED.read_bytes()))


def modelled_head_room(problem: Problem, spec: DeviceSpec) -> float | None:
    """The geometric mean over the small train workloads, PyTorch by its model."""
    ratios = []
    for workload in train_workloads(problem, Scale.SIM):
        seconds = reference_seconds(problem, make_inputs(problem, workload, SEED), spec)
        dims = workload.dims
        kinds = problem.dtypes_at(dims)
        roofline = spec.roofline_seconds(problem.bytes(dims), problem.flops(dims), *kinds)
        ratios.append(seconds / (roofline + spec.launch_seconds))
    return geometric_mean(ratios)


def compared_baselines(
    problems: Iterable[Problem], device: str, spec: DeviceSpec
) -> Iterator[ComparedBaseline]:
    """Yields the comparison of each problem that was measured on the device.

    Problems whose baseline is never PyTorch are left out: their head-room is that of a kernel.
    """
    for problem in problems:
        if not problem.fair_reference:
            continue
        measured = measured_head_room(problem.name, device, Mode.TORCH2TRITON)
        modelled = modelled_head_room(problem, spec) if measured else None
        if measured and modelled:
            yield ComparedBaseline(problem.name, measured, modelled)


def rank_correlation(rows: list[ComparedBaseline]) -> float:
    """Spearman's rho of measured and modelled head-room; NaN for fewer than two problems."""
    if len(rows) < 2:
        return float("nan")
    result = stats.spearmanr([r.measured for r in rows], [r.modelled for r in rows])
    return float(result.statistic)
