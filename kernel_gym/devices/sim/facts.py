"""Collects what one call on the simulator used: kernels with launches, times and profiles."""

from __future__ import annotations

from typing import TypedDict

from kernel_gym.inert import inert_object
from kernel_gym.sim.engine.engine import Kernel, LaunchResult
from kernel_gym.sim.timing.compared import stored
from kernel_gym.sim.timing.launch_profile import LaunchDescription

MAX_KERNELS = 32
"""Most kernels whose facts are read."""
MAX_UNKNOWN_SHARE = 0.1
"""A time is uncalibrated if more than this share of it was never compared."""
OPERATORS = "most of its time is operators and transfers of PyTorch, which were never compared"


class KernelDescription(TypedDict):
    """Facts about a kernel, with the field names of `KernelFacts`."""

    name: str
    binary: str
    vgprs: int
    agprs: int
    sgprs: int
    vgpr_spills: int
    sgpr_spills: int
    lds_bytes: int
    scratch_bytes: int
    instructions: int
    launches: int
    seconds: float
    waves_per_simd: float | None
    occupancy_limiter: str | None
    bound_by: str | None
    profile: dict[str, object]


class CallDescription(TypedDict):
    """The fields of `CallRecord` that describe the modelled time of a call."""

    launch_seconds: float
    uncalibrated: str
    kernels: list[KernelDescription]


class CallFacts:
    """The kernels of one call, by binary, so that specialisations of one name stay separate.

    Args:
        arch: The simulated architecture.
    """

    def __init__(self, arch: str) -> None:
        self._arch = arch
        self._calibrated = 0.0
        self._unknown: dict[str, float] = {}
        self._kernels: dict[str, KernelDescription] = {}
        self._longest: dict[str, float] = {}
        self.launch_seconds = 0.0
        """The part of the call's modelled time that is launch overhead, in seconds."""

    def begin(self, kernel: Kernel, threads: int, lds: int) -> None:
        """Records the begin of a launch, which may end with a fault.

        Args:
            kernel: The kernel.
            threads: Threads of a workgroup.
            lds: Bytes of LDS of a workgroup, static and dynamic.
        """
        entry = self._kernels.setdefault(kernel.binary, describe_kernel(kernel))
        entry["launches"] += 1
        if entry["waves_per_simd"] is None:
            residency = kernel.occupancy(threads, lds)
            entry["waves_per_simd"] = residency.waves_per_simd
            entry["occupancy_limiter"] = residency.limiter

    def end(self, kernel: Kernel, result: LaunchResult) -> None:
        """Records the end of a launch without a fault. The longest launch gives the profile."""
        entry, seconds = self._kernels[kernel.binary], result.seconds or 0.0
        entry["seconds"] += seconds
        self.launch_seconds += result.profile.get("launch_us", 0.0) * 1e-6
        why_not = stored().why_not(self._arch, seconds, result.profile)
        if why_not:
            self._unknown[why_not] = self._unknown.get(why_not, 0.0) + seconds
        else:
            self._calibrated += seconds
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

    def record(self, seconds: float) -> CallDescription:
        """The fields of a call's record that describe a modelled time of so many seconds."""
        return {
            "launch_seconds": self.launch_seconds,
            "uncalibrated": self._uncalibrated(seconds),
            "kernels": self.described(),
        }

    def _uncalibrated(self, seconds: float) -> str:
        """Why the modelled time of the call has no interval, in words; empty if it has one."""
        if seconds - self._calibrated <= MAX_UNKNOWN_SHARE * seconds:
            return ""
        launches = self._calibrated + sum(self._unknown.values())
        reasons = {OPERATORS: seconds - launches, **self._unknown}
        return max(reasons, key=lambda reason: reasons[reason])

    def described(self) -> list[KernelDescription]:
        """Returns the kernels, the slowest first. Only the slowest keeps its profile."""
        kernels = sorted(self._kernels.values(), key=lambda entry: -entry["seconds"])
        return [entry if i == 0 else {**entry, "profile": {}} for i, entry in enumerate(kernels)]


def describe_kernel(kernel: Kernel) -> KernelDescription:
    """Returns what the compiler reported about a kernel, with the field names of `KernelFacts`."""
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


def describe_launch(
    index: int,
    kernel: Kernel,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    lds: int,
    result: LaunchResult,
) -> LaunchDescription:
    """Describes a launch that has ended well, as a JSON value."""
    return {
        "kernel": index,
        "name": kernel.name,
        "grid": list(grid),
        "block": list(block),
        "lds": kernel.lds_bytes + lds,
        "seconds": result.seconds,
        "profile": inert_object(result.profile),  # quotes lines of the candidate's text
    }
