"""The two methods by which the judge times candidates; a device's description names one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kernel_gym.devices.base import Device, Failed, TimingMethod
from kernel_gym.judge.attempt import Attempt, Verdict
from kernel_gym.judge.timing.baselines import BaselineRunner
from kernel_gym.tasks.task import Task
from kernel_gym.tasks.workload import Workload


class Method(Protocol):
    """How candidates are built and timed on devices of one kind."""

    def build(self, attempt: Attempt) -> Verdict | None:
        """Loads the candidate into the attempt's session; returns a verdict if that fails."""

    def time(self, attempt: Attempt) -> Verdict | None:
        """Times all train and unseen workloads, and adds the times to the attempt's results."""

    def time_baseline(
        self,
        device: Device,
        baseline: BaselineRunner,
        task: Task,
        workloads: Sequence[Workload],
        seed: int,
    ) -> list[float] | Failed:
        """Times a task's baseline without a candidate, for head-room and never for pay.

        Args:
            device: The device.
            baseline: Runs the baseline.
            task: The task.
            workloads: What to time.
            seed: The seed of the data.

        Returns:
            Seconds of one call for each workload, or why the baseline failed.

        Raises:
            InfraError: The machine failed.
        """


def method_of(device: Device) -> Method:
    """Returns the method by which a device is timed. The other one is not loaded."""
    if device.description.timing is TimingMethod.REPORTED:
        from kernel_gym.judge.timing.reported import ReportedMethod

        return ReportedMethod()
    from kernel_gym.judge.timing.gpu import PairedMethod

    return PairedMethod()
