"""The simulated devices, such as `sim:gfx942`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import torch

from kernel_gym import triton_versions
from kernel_gym.devices.base import Exclusivity
from kernel_gym.devices.description import DeviceDescription, TimingMethod
from kernel_gym.devices.plan_store import EvaluationPlans
from kernel_gym.devices.sim.compiled import CompiledKernels, KernelFile
from kernel_gym.devices.sim.memory import create_file
from kernel_gym.devices.sim.planned_session import PlannedSession
from kernel_gym.devices.sim.session import MAX_LAUNCH_INSTRUCTIONS, SimOptions, SimSession
from kernel_gym.devices.sim.toolchain import HipToolchain, hip_toolchain
from kernel_gym.hardware import SIMULATED
from kernel_gym.records import Clock
from kernel_gym.sandbox.confine import WorkerLimits
from kernel_gym.sandbox.spawn import Child, shared_template
from kernel_gym.sim.constants import TIMING_MODEL_VERSION
from kernel_gym.tasks.embedded import installed_extras
from kernel_gym.tasks.problem import Scale
from kernel_gym.tasks.task import Task

UPSTREAM_BYTES = 2 << 30
"""Bytes of device memory of a program of a suite."""
UPSTREAM_HOST_BYTES = 6 << 30
"""Bytes of host memory of such a program."""


class SimDevice:
    """A simulated GPU: deterministic, on any machine. Its times are modelled.

    Args:
        threads: Host threads that run workgroups.
        arch: A key of :data:`~kernel_gym.hardware.SIMULATED`.
    """

    noise_file = None

    def __init__(self, threads: int = 1, arch: str = "gfx942") -> None:
        self._threads = threads
        self._kernels = CompiledKernels()
        self.description = describe_simulated(arch)

    def versions(self) -> dict[str, str]:
        """Returns the versions of everything that decides a result."""
        import kernel_gym

        toolchain = hip_toolchain(self.description.arch)
        clang = toolchain.version if isinstance(toolchain, HipToolchain) else "none"
        return {
            "kernel_gym": kernel_gym.__version__,
            "torch": torch.__version__,
            "triton": triton_versions.installed(),
            "clang": clang,
            "timing_model": TIMING_MODEL_VERSION,
        }

    def held(self, exclusivity: Exclusivity) -> contextlib.AbstractContextManager[None]:
        """Nobody has to wait, as each session has its own simulated GPU."""
        return contextlib.nullcontext()

    def usable(self, task: Task) -> bool:
        """Always true, as each session starts a new simulated GPU."""
        return True

    def open(
        self,
        task: Task,
        trusted: bool = False,
        seed: int = 0,
        resident: bool = False,
        launch_instructions: int | None = None,
        plans: EvaluationPlans | None = None,
    ) -> SimSession:
        """Starts a worker and a simulated GPU for sources that solve a task.

        Args:
            task: What the sources solve.
            trusted: Whether the source is the project's own.
            seed: Decides which workgroups the timing model samples. The worker does not know it.
            resident: Whether the worker stays: it has no budget of seconds.
            launch_instructions: Wave instructions until a launch is stopped; None for those of a
                candidate.
            plans: Where the plans of calls are stored, or read from instead of recording them.

        Raises:
            InfraError: A process could not be started.
        """
        limit = MAX_LAUNCH_INSTRUCTIONS if launch_instructions is None else launch_instructions
        options = SimOptions(
            self._threads, trusted, seed, self.description.arch, resident, limit, plans
        )
        kernels = KernelFile(self._kernels, resident) if task.problem.recorded else None
        return PlannedSession(task, options, kernels)

    @contextlib.contextmanager
    def upstream(self, output: int, seconds: float) -> Iterator[Child]:
        """Forks a process for a program on files of a suite, with a simulated GPU in it.

        Args:
            output: A descriptor that takes what it prints.
            seconds: Seconds of the wall that it may take.
        """
        device = {
            "arch": self.description.arch,
            "threads": os.cpu_count() or 1,
            "memory": UPSTREAM_BYTES,
        }
        limits = WorkerLimits(memory=UPSTREAM_HOST_BYTES, cpu_seconds=int(seconds) * 8)
        memory = create_file()
        try:
            child = shared_template().fork("upstream", [output, memory], device, limits)
            with contextlib.closing(child):
                yield child
        finally:
            os.close(memory)

    def free_unused_memory(self) -> None:
        """Does nothing: sessions hold all memory."""

    def synchronize(self) -> None:
        """Does nothing: the judge computes on the CPU."""

    def close(self) -> None:
        """Does nothing: sessions hold everything."""


def describe_simulated(arch: str) -> DeviceDescription:
    """Describes a simulated device. HIP needs a clang with ROCm's device libraries."""
    spec = SIMULATED[arch]
    has_hip = isinstance(hip_toolchain(arch), HipToolchain)
    return DeviceDescription(
        name=f"sim:{arch}",
        hardware=f"sim:{arch}",
        spec=spec,
        clock=Clock.MODELLED,
        timing=TimingMethod.REPORTED,
        scale=Scale.SIM,
        languages=("triton", "hip") if has_hip else ("triton",),
        facts=spec.facts,
        embedded=installed_extras(has_hip),
        torch_device=torch.device("cpu"),
        arch=arch,
        audits=True,
        device_per_session=True,
    )
