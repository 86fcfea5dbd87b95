"""Head-room over PyTorch that was measured on GPUs, beside the one that is modelled."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from scipy import stats

from benchmarks.modelled_baselines import modelled_head_room
from kernel_gym.hardware import DeviceSpec
from kernel_gym.tasks.problem import Problem
from kernel_gym.tasks.task import Mode

MEASURED = Path(__file__).with_name("measured_head_room.json")
"""Device, problem and mode to head-room at full sizes.

The H200's is from the verdicts of 2026-11-27, the H100's was measured on 2026-11-24. The rules of
operators and the tasks of `tiny_gpu.toml` were made from the figures of 2026-11-22, which have an
entry of their own.
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
