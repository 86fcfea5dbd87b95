"""A real GPU (`cuda:N`, `rocm:N`), one class for both vendors. Times are measured.

The judge draws inputs, computes the oracle and compares values in its own process. A candidate's
host code runs in a recorder, which has no device. Launchers, which are trusted, execute its plans.
Building runs beside other evaluations; everything on the GPU runs alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch

from kernel_gym.devices.base import (
    DeviceDescription,
    Exclusivity,
    InfraError,
    MemoryUsedUpError,
    NotOfferedError,
)
from kernel_gym.devices.gpu.host_memory import HostMemory
from kernel_gym.devices.gpu.judge_memory import HELD_BYTES, ROOM_SHARE, JudgeMemory
from kernel_gym.devices.gpu.launchers import LauncherRecipe, Launchers, LauncherSlot
from kernel_gym.devices.gpu.lock import GpuLock
from kernel_gym.devices.gpu.programs import PlanProgram
from kernel_gym.devices.gpu.recording import GpuRecorder
from kernel_gym.devices.gpu.session import GpuSession
from kernel_gym.devices.gpu.staging import StagingMemory
from kernel_gym.devices.gpu.strided_copies import StridedCopies
from kernel_gym.sandbox.spawn import Child
from kernel_gym.tasks.task import Task

PAIRED_TIMING_VERSION = "6"
"""Rises when calls are timed or compared in another way, as that of the modelled clock does."""
FULL = "the GPU's memory is used up; run fewer evaluators on it"


@dataclass(frozen=True)
class GpuRecipe:
    """How recorders and launchers of a GPU are started."""

    launcher: LauncherRecipe
    recorder: Mapping[str, object]
    """Facts of the GPU for a recorder, see `kernel_gym.worker.recording.main`."""
    target: tuple[str, int | str, int]
    """Triton's backend, architecture and lanes of a warp."""
    identity: str
    """A name of the GPU that is the same in every process."""
    versions: Mapping[str, str]
    """Versions of what decides a result, besides those of packages."""


class GpuDevice:
    """One GPU of this machine.

    Args:
        description: The facts that are known of it.
        recipe: How its processes are started.
    """

    def __init__(self, description: DeviceDescription, recipe: GpuRecipe) -> None:
        self.description, self._recipe = description, recipe
        self._judge = JudgeMemory(description.torch_device)
        self._judge.reserve()
        where = description.torch_device
        staging = StagingMemory(recipe.launcher.vendor, where)
        self.memory = HostMemory(description.shared_memory, where, staging)
        self.lock = GpuLock(recipe.identity)
        launcher = replace(recipe.launcher, staging=staging.handle)
        self._launchers = Launchers(launcher, self.memory.file)
        self._copies = StridedCopies(recipe.target)

    @property
    def noise_file(self) -> Path:
        """Where evaluators of this GPU share the last measurement of its noise floor."""
        return self.lock.state

    def versions(self) -> dict[str, str]:
        """Returns the versions of everything that decides a result."""
        import triton

        import kernel_gym

        return {
            "kernel_gym": kernel_gym.__version__,
            "torch": torch.__version__,
            "triton": triton.__version__,
            "paired_timing": PAIRED_TIMING_VERSION,
            **self._recipe.versions,
        }

    @contextlib.contextmanager
    def held(self, exclusivity: Exclusivity) -> Iterator[None]:
        """Holds the GPU alone or beside others, or not at all: an evaluation builds on the host."""
        self._judge.select()
        try:
            if exclusivity is Exclusivity.FREE:
                yield
                return
            shared = exclusivity is Exclusivity.SHARED
            with self.lock.shared() if shared else self.lock.alone():
                try:
                    yield
                finally:
                    self._judge.give_back(HELD_BYTES)
        except torch.OutOfMemoryError as error:
            raise InfraError(FULL) from error
        except MemoryUsedUpError as error:  # the candidate holds no more than its share
            raise InfraError(f"{FULL}: {error}") from error

    def usable(self, task: Task) -> bool:
        """Whether memory is left for an evaluation, and a launcher gets its context."""
        if not self._judge.has_room():
            return False
        slot = self._launchers.take(trusted=True)
        try:
            slot.process()
        except InfraError:
            return False
        finally:
            self._launchers.give(slot, trusted=True)
        return True

    def open(
        self,
        task: Task,
        trusted: bool = False,
        seed: int = 0,
        resident: bool = False,
        launch_instructions: int | None = None,
    ) -> GpuSession:
        """Opens a session: a recorder for the source, and a launcher for its plans.

        Args:
            task: What the sources solve.
            trusted: Whether the source is the project's own.
            seed: Not used, as times are measured.
            resident: Not used: a suite's own code has no plan yet.
            launch_instructions: Not used: a launch on a GPU cannot be stopped.

        Raises:
            NotOfferedError: The task is of an imported suite whose code may need data, or in a
                language that has no plans on this GPU.
            InfraError: A process could not be started.
        """
        if task.problem.recorded or task.problem.worker_reference is not None:
            raise NotOfferedError(
                f"{task.id} is not offered on {self.description.name}: its calls may need data, "
                "and have no plan yet"
            )
        if task.language not in self.description.languages:
            raise NotOfferedError(
                f"{task.id} is not offered on {self.description.name}: sources in {task.language} "
                f"have no plan there; it takes {', '.join(self.description.languages)}"
            )
        recorder = GpuRecorder(self._recipe.recorder, trusted)
        slot = self._launchers.take(trusted)
        most = int(ROOM_SHARE * (self.description.total_memory or 1 << 40))
        return GpuSession(
            task,
            PlanProgram(
                task, recorder, self.memory, slot, most, self.description.arch, self._copies
            ),
            self.memory,
            slot,
            partial(self.held, Exclusivity.ALONE),
            recorder.confinement,
            partial(self._give, slot, trusted),
        )

    def _give(self, slot: LauncherSlot, trusted: bool) -> None:
        self._launchers.give(slot, trusted)

    @contextlib.contextmanager
    def upstream(self, output: int, seconds: float) -> Iterator[Child]:
        """Refuses: programs on files of a suite run host code beside the device.

        Raises:
            NotOfferedError: Always.
        """
        raise NotOfferedError(f"{self.description.name} runs no programs of suites")
        yield  # makes this a context

    def free_unused_memory(self) -> None:
        """Returns memory to the driver if PyTorch keeps too much of it unused."""
        self._judge.give_back()

    def synchronize(self) -> None:
        """Waits until this process has no work left on the GPU."""
        self._judge.synchronize()

    def close(self) -> None:
        """Ends the launchers and frees the shared memory."""
        self._launchers.close()
        self.memory.close()


def open_gpu(name: str) -> GpuDevice:
    """Opens a GPU that PyTorch sees.

    Args:
        name: "cuda:N" or "rocm:N".

    Raises:
        InfraError: There is no such GPU, its data sheet is not known, or it cannot be used.
    """
    from kernel_gym.devices.gpu.vendors import describe_gpu, selecting, uuid_of, vendor_here
    from kernel_gym.devices.gpu.vendors import reported as reported_by

    vendor, index = vendor_here(), int(name.partition(":")[2])
    try:
        torch.cuda.set_device(index)
        properties = torch.cuda.get_device_properties(index)
        torch.zeros(1, device="cuda")
    except (RuntimeError, AssertionError) as error:
        raise InfraError(f"{name} cannot be used: {str(error).splitlines()[0]}") from error
    description = describe_gpu(name, properties)
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.enable_cudnn_sdp(False)  # new shapes took 45 ms each with it
    launcher = LauncherRecipe(
        vendor.name, description.spec.flush_bytes, environment=selecting(vendor, properties, index)
    )
    reported = reported_by(vendor, properties)
    recorder = {
        "arch": description.arch,
        "memory": int(properties.total_memory),
        "reported": reported,
    }
    versions = {
        "runtime": str(torch.version.hip or torch.version.cuda),
        "gpu": properties.name,
    }
    identity = uuid_of(properties) or name
    target = tuple(reported["target"])
    return GpuDevice(description, GpuRecipe(launcher, recorder, target, identity, versions))
