"""A GPU whose driver is the simulated HIP runtime: the whole path of `rocm:0` without hardware."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import torch

from kernel_gym.devices import describe
from kernel_gym.devices.description import TimingMethod
from kernel_gym.devices.gpu.device import GpuDevice, GpuRecipe
from kernel_gym.devices.gpu.launchers import LauncherRecipe
from kernel_gym.evaluator import Evaluator
from kernel_gym.records import Clock
from kernel_gym.simulated_rocm.folders import library_folder

SHARED_BYTES = 64 << 20
FLUSH_BYTES = 1 << 16
REPORTED = {
    "name": "AMD Instinct MI300X",
    "arch": "gfx942",
    "hip": "6.4.0",
    "major": 9,
    "minor": 4,
    "warp_size": 64,
    "target": ["hip", "gfx942", 64],
    "multi_processor_count": 304,
    "shared_memory": 64 << 10,
    "total_memory": 512 << 20,
    "L2_cache_size": 4 << 20,
}
ENVIRONMENT = {"KERNEL_GYM_SIM_DEVICE": "sim:gfx942", "KERNEL_GYM_SIM_THREADS": "1"}


def description():
    """Describes the device: sizes of the simulator, timed as a GPU."""
    return replace(
        describe("sim:gfx942"),
        name="rocm:0",
        clock=Clock.MEASURED,
        timing=TimingMethod.PAIRED,
        torch_device=torch.device("cpu"),
        audits=False,
        device_per_session=False,
        total_memory=8 * REPORTED["total_memory"],
        shared_memory=SHARED_BYTES,
    )


def device(identity: str = "simulated HIP runtime") -> GpuDevice:
    """Opens the device."""
    library = str(library_folder() / "libamdhip64.so")
    launcher = LauncherRecipe("rocm", FLUSH_BYTES, library, ENVIRONMENT, pin=False)
    recorder = {"arch": "gfx942", "memory": 512 << 20, "reported": REPORTED}
    target = ("hip", "gfx942", 64)
    recipe = GpuRecipe(launcher, recorder, target, identity, {"gpu": "simulated"})
    return GpuDevice(description(), recipe)


@contextmanager
def evaluator():
    """Opens an evaluator on the device."""
    with Evaluator("sim:gfx942", seed=7) as judge:
        judge.device.close()
        judge.device = judge._baseline._device = device()
        yield judge
