"""Head-room (rule 4): the time of a baseline over the time of the roofline with one launch.

Times of start kernels come from their evaluation. Times of PyTorch are modelled on the simulator
and measured on a GPU, once per problem for all modes in which PyTorch is the baseline.
"""

from __future__ import annotations

import threading

from kernel_gym.admission.values import SEED
from kernel_gym.analysis.summary import geometric_mean
from kernel_gym.devices.base import Device, Failed
from kernel_gym.judge.timing.baselines import BaselineRunner, BaselineTimes
from kernel_gym.judge.timing.methods import method_of
from kernel_gym.records import Evaluation
from kernel_gym.tasks.names import Mode
from kernel_gym.tasks.problem import Problem
from kernel_gym.tasks.sampling import train_workloads
from kernel_gym.tasks.task import Task
from kernel_gym.tasks.workload import Split


class ReferenceFailed(Exception):
    """The PyTorch reference cannot be timed on the device. The message gives the reason."""


class HeadRoom:
    """Computes the head-room of tasks on one device. Thread-safe.

    Args:
        device: The device of the evaluations.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._baseline = BaselineRunner(device, BaselineTimes())
        self._lock = threading.Lock()
        self._times: dict[str, list[float] | Failed] = {}

    def of(self, task: Task, evaluation: Evaluation) -> float | None:
        """Returns the head-room of a task, the geometric mean over its train workloads.

        Args:
            task: The task. It decides the baseline.
            evaluation: A passed evaluation of the start kernel in the task's language.

        Returns:
            Baseline time over roofline time with one launch; None if a time is missing.

        Raises:
            ReferenceFailed: The baseline is PyTorch and cannot be timed.
            InfraError: The machine failed.
        """
        results = evaluation.by_split(Split.TRAIN)
        seconds = [result.baseline_seconds for result in results]
        if task.baseline == "torch":
            seconds = [*self._reference_seconds(task.problem)]
        shortest, ratios = self._device.description.spec.shortest_kernel_seconds, []
        for time, result in zip(seconds, results, strict=True):
            if time is None or result.roofline_seconds is None:
                return None
            ratios.append(time / (shortest + result.roofline_seconds))
        mean = geometric_mean(ratios)
        return None if mean is None else round(mean, 3)

    def of_reference(self, problem: Problem) -> float | None:
        """Returns the head-room of a problem without a start kernel, whose baseline is PyTorch.

        Raises:
            ReferenceFailed: PyTorch cannot be timed.
            InfraError: The machine failed.
        """
        described = self._device.description
        spec, ratios = described.spec, []
        workloads = train_workloads(problem, described.scale)
        for seconds, workload in zip(self._reference_seconds(problem), workloads, strict=True):
            moved, flops = problem.bytes(workload.dims), problem.flops(workload.dims)
            least = spec.roofline_seconds(moved, flops, *problem.dtypes_at(workload.dims))
            ratios.append(seconds / (spec.shortest_kernel_seconds + least))
        mean = geometric_mean(ratios)
        return None if mean is None else round(mean, 3)

    def close(self) -> None:
        """Stops the worker in which PyTorch is timed."""
        self._baseline.close()

    def _reference_seconds(self, problem: Problem) -> list[float]:
        with self._lock:
            if problem.name not in self._times:
                self._times[problem.name] = self._timed(Task(problem, Mode.TORCH2TRITON))
            times = self._times[problem.name]
        if isinstance(times, Failed):
            raise ReferenceFailed(times.message)
        return times

    def _timed(self, task: Task) -> list[float] | Failed:
        workloads = train_workloads(task.problem, self._device.description.scale)
        method = method_of(self._device)
        return method.time_baseline(self._device, self._baseline, task, workloads, SEED)
