"""The device as the HIP host runtime describes it to programs."""

from __future__ import annotations

import ctypes

from kernel_gym.sim.asm.targets import TARGETS
from kernel_gym.worker.sim.properties import HostProperties


class HipDevice(ctypes.Structure):
    """`HipDevice` of hip_process.h."""

    _fields_ = [
        *(("name", ctypes.c_char * 64), ("arch", ctypes.c_char * 64)),
        *((name, ctypes.c_int) for name in ("gcn_arch", "minor", "units", "l2")),
        *((name, ctypes.c_int) for name in ("clock", "memory_clock", "bus")),
        *((name, ctypes.c_size_t) for name in ("memory", "lds")),
    ]


def described(device: HostProperties) -> HipDevice:
    """Describes a device for the HIP runtime. The number of gfx90a is 910, as in HIP."""
    number, target = device.arch.removeprefix("gfx"), TARGETS[device.arch]
    return HipDevice(
        *(device.name.encode(), device.full_arch.encode()),
        *(int(number) if number.isdigit() else 910, device.minor),
        *(target.compute_units, device.l2_bytes),
        *(device.clock_khz, device.memory_clock_khz, device.bus_bits),
        *(device.memory_bytes, target.lds_bytes),
    )
