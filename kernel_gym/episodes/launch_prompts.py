"""Prompts for policies that are too small to read a kernel: its launch, or also its profile."""

from __future__ import annotations

from functools import lru_cache
from statistics import fmean
from typing import Any

from kernel_gym.devices import backend_of
from kernel_gym.episodes.edits import launches, relaunched, space_of
from kernel_gym.profiles import profile_of
from kernel_gym.tasks import Task


class LaunchPrompt:
    """Prompts with one statement, the launch of the start kernel; the answer is an edit of it.

    They are for policies that are too small to read a kernel.

    Args:
        device: A device name. It decides which numbers a launch may have, but not the text.

    Attributes:
        space: The numbers that a launch may have.
    """

    def __init__(self, device: str) -> None:
        self.space = space_of(device)

    def __call__(self, task: Task) -> str:
        """The prompt for a task.

        Raises:
            ValueError: The task has no start kernel in Triton.
        """
        if task.start_source is None or task.language != "triton":
            raise ValueError(
                f"task {task.id!r} has no launch to edit: expected one of triton2triton, or "
                "another prompt than 'launch'"
            )
        return self.of(task, task.start_source)

    def of(self, task: Task, source: str) -> str:
        """The prompt for a task with another source to edit."""
        return "# Edit\n" + "\n".join(launches(source)) + "\n"


class ProfiledPrompt(LaunchPrompt):
    """Prompts with the launch of the source to edit, and a few lines of its profile.

    The profile is that of an evaluation on train workloads, see :mod:`kernel_gym.profiles`. Each
    kernel is evaluated once in a process. Its times are modelled, so that it needs a simulator.

    Args:
        device: The name of a simulated device.

    Raises:
        ValueError: The device is no simulator.
    """

    def __init__(self, device: str) -> None:
        if not backend_of(device).deterministic:
            raise ValueError(
                f"prompt 'profiled': found device {device!r}, expected a simulated one such as "
                "'sim:gfx942', whose profiles do not change"
            )
        super().__init__(device)
        self._device = device

    def of(self, task: Task, source: str) -> str:
        """The prompt for a task with another source to edit.

        Names in the source do not matter: the profile is that of the start kernel with its launch.
        """
        kernel = relaunched(task.start_source or "", source)
        return super().of(task, source) + "# Profile\n" + _profile(self._device, task, kernel)


@lru_cache(maxsize=4096)
def _profile(device: str, task: Task, source: str) -> str:
    from kernel_gym.evaluator import Evaluator

    with Evaluator(device=device, seed=0) as evaluator:
        return profile_lines(profile_of(evaluator.evaluate(task, source)))


def profile_lines(profile: dict[str, Any]) -> str:
    """A profile in five lines of few words: limits, and numbers at the end of lines.

    Args:
        profile: As of :func:`kernel_gym.profiles.profile_of`.

    Example:
        >>> print(profile_lines({}))
        no profile
        <BLANKLINE>
    """
    kernels = profile.get("kernels")
    if not kernels:
        return "no profile\n"
    slowest = max(kernels, key=lambda kernel: kernel["seconds"] or 0.0)
    stalls = slowest.get("stalls") or {}
    shares = [row["share"] for row in profile["roofline"] if row["share"] is not None]
    return (
        f"bound by {slowest['bound_by'] or 'unknown'}\n"
        f"most time in {max(stalls, key=stalls.__getitem__, default='unknown')}\n"
        f"occupancy limited by {slowest['occupancy_limiter'] or 'nothing'}\n"
        f"waves {int(slowest['waves_per_simd'] or 0)}\n"
        f"percent of roofline {round(100 * fmean(shares)) if shares else 0}\n"
    )
