"""Reports of a real GPU, in the form of the properties of simulated devices."""

from __future__ import annotations

from types import SimpleNamespace


def host_properties(reported: SimpleNamespace) -> SimpleNamespace:
    """Returns the properties of a GPU in the form of `HostProperties` of simulated devices.

    Args:
        reported: What it reports, as `kernel_gym.devices.gpu.vendors.reported` returns it.
    """
    spec = SimpleNamespace(
        compute_units=reported.multi_processor_count,
        wavefront=reported.warp_size,
        lds_bytes=reported.shared_memory,
    )
    return SimpleNamespace(
        arch=reported.arch,
        full_arch=reported.arch,
        name=reported.name,
        minor=reported.minor,
        memory_bytes=reported.total_memory,
        l2_bytes=reported.L2_cache_size,
        clock_khz=1_000_000,
        memory_clock_khz=1_000_000,
        bus_bits=4096,
        spec=spec,
    )
