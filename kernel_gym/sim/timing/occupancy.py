"""How many waves and workgroups of a kernel fit on a compute unit."""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gym.sim import constants as hw


@dataclass(frozen=True)
class Occupancy:
    """Residency of a kernel on a compute unit.

    Attributes:
        waves_per_simd: Waves on the fullest SIMD.
        workgroups_per_cu: Workgroups on a compute unit.
        limiter: The resource that limits residency: ``vector registers``, ``LDS``,
            ``wave slots`` or ``workgroup slots``.
    """

    waves_per_simd: int
    workgroups_per_cu: int
    limiter: str


def occupancy(
    block_threads: int, lds_bytes: int, vector_registers: int, lds_available: int = 64 << 10
) -> Occupancy:
    """Compute the residency of a workgroup shape.

    Args:
        block_threads: Threads in a workgroup.
        lds_bytes: LDS of a workgroup, static and dynamic.
        vector_registers: Vector and accumulation registers a lane.
        lds_available: LDS of a compute unit.

    Returns:
        The residency. No workgroup fits if it has more waves or LDS than a compute unit.
    """
    waves = -(-block_threads // hw.WAVE_LANES)
    granules = -(-max(1, vector_registers) // hw.VECTOR_GRANULE)
    waves_by_registers = hw.VECTOR_REGISTERS // (granules * hw.VECTOR_GRANULE)
    slots = min(hw.MAX_WAVES_PER_SIMD, waves_by_registers) * hw.SIMDS
    lds = -(-lds_bytes // hw.LDS_GRANULE) * hw.LDS_GRANULE
    limits = {
        "vector registers": waves_by_registers * hw.SIMDS // waves,
        "wave slots": hw.MAX_WAVES_PER_SIMD * hw.SIMDS // waves,
        "LDS": lds_available // lds if lds else lds_available,
        "workgroup slots": hw.MAX_WORKGROUPS_PER_CU,
    }
    # For ties, name the limit that a programmer can change: registers, then LDS, then slots.
    order = ("vector registers", "LDS", "wave slots", "workgroup slots")
    limiter = min(order, key=lambda name: limits[name])
    workgroups = limits[limiter]
    resident = min(slots, workgroups * waves)
    return Occupancy(-(-resident // hw.SIMDS), workgroups, limiter)
