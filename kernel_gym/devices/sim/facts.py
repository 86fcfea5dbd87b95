"""What one call on the simulator used: each compiled kernel with its launches, time and profile."""

from __future__ import annotations

from typing import Any

from kernel_gym.records import KernelFacts
from kernel_gym.sim.engine.engine import Kernel, LaunchResult
from kernel_gym.sim.timing.profile import without_folders


class CallFacts:
    """The kernels of one call, by binary: specialisations of one name stay apart."""

    def __init__(self) -> None:
        self._kernels: dict[str, dict[str, Any]] = {}
        self._longest: dict[str, float] = {}
        self.launch_seconds = 0.0
        """Part of the call's modelled time that is the cost of launching."""

    def begin(self, kernel: Kernel, threads: int, lds: int) -> None:
        """A launch begins; a fault may end it.

        Args:
            kernel: what is launched.
            threads: in a workgroup.
            lds: bytes of a workgroup, static and dynamic.
        """
        entry = self._kernels.setdefault(kernel.binary, describe_kernel(kernel))
        entry["launches"] += 1
        if entry["waves_per_simd"] is None:
            residency = kernel.occupancy(threads, lds)
            entry["waves_per_simd"] = residency.waves_per_simd
            entry["occupancy_limiter"] = residency.limiter

    def end(self, kernel: Kernel, result: LaunchResult) -> None:
        """The launch has ended without a fault: its time counts, the longest gives the profile."""
        entry, seconds = self._kernels[kernel.binary], result.seconds or 0.0
        entry["seconds"] += seconds
        self.launch_seconds += result.profile.get("launch_us", 0.0) * 1e-6
        if seconds <= self._longest.get(kernel.binary, -1.0):
            return
        self._longest[kernel.binary] = seconds
        occupancy = result.profile.get("occupancy", {})
        entry |= {
            "waves_per_simd": occupancy.get("waves_per_simd"),
            "occupancy_limiter": occupancy.get("limiter"),
            "bound_by": result.profile.get("bound_by"),
            "profile": result.profile,
        }

    def described(self) -> list[dict[str, Any]]:
        """The kernels, the one that took most time first; only that one keeps its profile."""
        kernels = sorted(self._kernels.values(), key=lambda entry: -entry["seconds"])
        return [entry if i == 0 else {**entry, "profile": {}} for i, entry in enumerate(kernels)]


def describe_kernel(kernel: Kernel) -> dict[str, Any]:
    """What the compiler made of a kernel, in the names of `KernelFacts`."""
    return {
        "name": kernel.name,
        "binary": kernel.binary,
        "vgprs": kernel.vgprs,
        "agprs": kernel.agprs,
        "sgprs": kernel.sgprs,
        "vgpr_spills": kernel.vgpr_spills,
        "sgpr_spills": kernel.sgpr_spills,
        "lds_bytes": kernel.lds_bytes,
        "scratch_bytes": kernel.scratch_bytes,
        "instructions": kernel.instructions,
        "launches": 0,
        "seconds": 0.0,
        "waves_per_simd": None,
        "occupancy_limiter": None,
        "bound_by": None,
        "profile": {},
    }


def read_kernels(described: list[dict[str, Any]]) -> tuple[KernelFacts, ...]:
    """The facts of a call's kernels, without folders, which differ from run to run."""
    return tuple(
        KernelFacts(**{**entry, "profile": without_folders(entry["profile"])})
        for entry in described
    )
