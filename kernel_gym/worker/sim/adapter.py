"""A stand-in until the device of its own is there."""

from __future__ import annotations

import os
from typing import Any

from kernel_gym.worker.sim.settings import Settings


def enable(settings: Settings, recorder: Any) -> Any:
    """Brings the device up."""
    from kernel_gym.devices.base import Audit
    from kernel_gym.devices.sim import memory as sim_memory
    from kernel_gym.devices.sim.simulated_gpu import SimulatedGpu
    from kernel_gym.worker.sim import cuda_facade, script, triton_driver

    options = {
        "threads": settings.threads or os.cpu_count() or 1,
        "memory": settings.memory or 8 << 30,
        "launch_limit": settings.launch_limit,
        "arch": settings.arch,
        "margin": sim_memory.GUARD if settings.bounds == "warn" else 0,
        "go_on": settings.audit,
    }
    file = sim_memory.create_file()
    sim_memory.map_device(file)
    gpu = SimulatedGpu(options, recorder)
    if settings.audit:
        gpu.begin(noop=False, audit=Audit.ON)
    runtime = script.ScriptRuntime(gpu)
    script.DeviceTensor.__repr__ = script._values  # type: ignore[assignment]
    triton_driver.install(runtime)
    cuda_facade.install(runtime)
    for mode in (script.GuardlessMode, script.ReadMode, script.ComputeMode):
        mode(runtime).__enter__()
    return runtime
