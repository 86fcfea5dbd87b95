"""Rule 4: how much longer a baseline takes than the roofline and one launch allow.

Times of start kernels come with their evaluation. PyTorch's are modelled on a simulator and
measured on a GPU, once a problem for all modes in which it is the baseline.
"""

from __future__ import annotations

import threading

from kernel_gym.admission.values import SEED
from kernel_gym.analysis.summary import geometric_mean
from kernel_gym.devices.base import Device, Failed
from kernel_gym.judge.timing.baselines import Baseline, BaselineTimes
from kernel_gym.judge.timing.methods import method_of
from kernel_gym.records import Evaluation
from kernel_gym.tasks.problem import Problem
from kernel_gym.tasks.sampling import train_workloads
from kernel_gym.tasks.task import Mode, Task
from kernel_gym.tasks.workload import Split


class ReferenceFailed(Exception):
    """The PyTorch reference of a problem cannot be timed on the device; the text says why."""


class HeadRoom:
    """The head-room of tasks on one device. Thread-safe.

    Args:
        device: where the evaluations were made.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._baseline = Baseline(device, BaselineTimes())
        self._alone = threading.Lock()
        self._found: dict[str, list[float] | Failed] = {}

    def of(self, task: Task, evaluation: Evaluation) -> float | None:
        """Geometric mean over the train workloads.

        Args:
            task: whose baseline counts.
            evaluation: of the start kernel in the task's language, which passed.

        Returns:
            Baseline time over roofline time, launch included; None where a time is missing.

        Raises:
            ReferenceFailed: the baseline is PyTorch, and cannot be timed.
            InfraError: the machine failed.
        """
        results = evaluation.by_split(Split.TRAIN)
        seconds = [result.baseline_seconds for result in results]
        if task.baseline == "torch":
            seconds = [*self._reference_seconds(task.problem)]
        launch, ratios = self._device.description.spec.launch_seconds, []
        for time, result in zip(seconds, results, strict=True):
            if time is None or result.roofline_seconds is None:
                return None
            ratios.append(time / (launch + result.roofline_seconds))
        mean = geometric_mean(ratios)
        return None if mean is None else round(mean, 3)

    def close(self) -> None:
        """Ends the worker that PyTorch was timed in."""
        self._baseline.close()

    def _reference_seconds(self, problem: Problem) -> list[float]:
        with self._alone:
            if problem.name not in self._found:
                self._found[problem.name] = self._timed(Task(problem, Mode.TORCH2TRITON))
            found = self._found[problem.name]
        if isinstance(found, Failed):
            raise ReferenceFailed(found.message)
        return found

    def _timed(self, task: Task) -> list[float] | Failed:
        workloads = train_workloads(task.problem, self._device.description.scale)
        method = method_of(self._device)
        return method.time_baseline(self._device, self._baseline, task, workloads, SEED)
