"""Makes a simulated GPU available to the rest of this process."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypedDict

from kernel_gym.devices.sim.simulated_gpu import Observer
from kernel_gym.programs.device_size import device_memory
from kernel_gym.programs.local_runtime import LocalRuntime
from kernel_gym.sim.timing.folders import without_folders
from kernel_gym.sim.timing.launch_profile import LaunchDescription
from kernel_gym.torch_device import library


class Simulation:
    """The simulated GPU of this process and what it has seen.

    Args:
        runtime: The device, installed as the GPU of PyTorch and Triton.
    """

    def __init__(self, runtime: LocalRuntime) -> None:
        self.runtime = runtime

    @property
    def observer(self) -> Observer | None:
        """Is called for what happens on the device."""
        return self.runtime.gpu.observer

    @property
    def launches(self) -> list[LaunchDescription]:
        """Each launch in order: `name`, `grid`, `block`, `lds`, `seconds` and `profile`."""
        return [
            {**launch, "profile": without_folders(launch["profile"])}
            for launch in self.runtime.gpu.launches
        ]

    @property
    def kernels(self) -> dict[str, KernelUse]:
        """By name of a kernel: `launches`, `seconds`, and what its longest launch says."""
        kernels: dict[str, KernelUse] = {}
        for launch in self.launches:
            add_launch(kernels, launch)
        return kernels

    @property
    def operators(self) -> dict[str, dict[str, float]]:
        """By name of a PyTorch operator: `calls`, `bytes`, `flops` and modelled `seconds`."""
        return library.operators()

    @property
    def findings(self) -> list[dict[str, object]]:
        """Findings of the audits, and the device's fault at the end: `message` and details."""
        gpu = self.runtime.gpu
        return [*gpu.findings.values(), *([gpu.fault] if gpu.fault else [])]

    def take_fault(self) -> dict[str, object] | None:
        """Returns the device's fault, if there is one, and lets the device run on.

        After a fault the device refuses each launch, as a GPU does until its process ends.
        """
        fault, self.runtime.gpu.fault = self.runtime.gpu.fault, None
        return fault

    @property
    def seconds(self) -> float:
        """Modelled seconds of all launches, operators and transfers."""
        return self.runtime.seconds


class KernelUse(TypedDict, total=False):
    """All launches of a kernel; what follows `longest` describes the longest one."""

    launches: int
    seconds: float
    longest: float
    """Seconds of the longest launch."""
    grid: Sequence[int]
    block: Sequence[int]
    lds: int
    profile: dict[str, object]


def add_launch(kernels: dict[str, KernelUse], launch: LaunchDescription) -> None:
    """Adds a launch to the table of kernels by name."""
    seconds = launch["seconds"] or 0.0
    entry = kernels.setdefault(launch["name"], {"launches": 0, "seconds": 0.0, "longest": -1.0})
    entry["launches"] += 1
    entry["seconds"] += seconds
    if seconds > entry["longest"]:
        entry["longest"], entry["profile"] = seconds, launch["profile"]
        entry["grid"], entry["block"] = launch["grid"], launch["block"]
        entry["lds"] = launch["lds"]


_enabled: Simulation | None = None


def simulation() -> Simulation | None:
    """Returns the simulated GPU of this process, if there is one."""
    return _enabled


def enable(
    arch: str = "gfx942",
    threads: int | None = None,
    memory: int | None = None,
    launch_limit: float = 600.0,
    audit: bool = False,
    bounds: str = "fault",
    observer: Observer | None = None,
) -> Simulation:
    """Implements `kernel_gym.enable_simulation`, which documents it.

    With an observer the device does not keep its launches.
    """
    global _enabled
    if _enabled is None:
        runtime = LocalRuntime(
            *(threads or os.cpu_count() or 1, memory or device_memory(), launch_limit, arch, audit),
            bounds=bounds,
            observer=observer,
        )
        runtime.install()
        _enabled = Simulation(runtime)
    elif _enabled.runtime.properties.arch != arch:
        other = _enabled.runtime.properties.arch
        raise RuntimeError(f"this process has a simulated {other} already, expected {arch}")
    return _enabled
