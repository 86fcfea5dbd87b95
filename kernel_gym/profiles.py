"""The profile of a submission as data: what bounds it, where it waits, how far the roofline is.

The data has the facts of train workloads only, so that a policy may see it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from kernel_gym.formatting import profiled_workload, roofline_share
from kernel_gym.inert import inert_object
from kernel_gym.records import Evaluation, KernelFacts, WorkloadResult
from kernel_gym.sim.timing.launch_profile import ProfiledPlace, launch_profile
from kernel_gym.symbols import plain_name
from kernel_gym.tasks.workload import Split

HOTTEST = 8
"""Most source lines of a profile."""


class SubmissionProfile(TypedDict, total=False):
    """The profile of a submission, see `profile_of`."""

    clock: str
    workload: dict[str, int] | None
    kernels: list[dict[str, object]]
    roofline: list[dict[str, object]]


def profile_of(evaluation: Evaluation) -> SubmissionProfile:
    """The profile of a submission as JSON.

    Args:
        evaluation: A record, complete or without what identifies hidden workloads.

    Returns:
        An empty dictionary if no kernel is known. Otherwise:

        - `clock`: "modelled" or "measured".
        - `workload`: the dimensions that the kernels were profiled on; None if not known.
        - `kernels`: for each kernel `name`, `bound_by`, `seconds`, `launches`, `vgprs`, `sgprs`,
          `lds_bytes`, `spilled`, `waves_per_simd` and `occupancy_limiter`; for the slowest one also
          `stalls` and `of_peak` (shares by name), `hottest`: source lines with the share of
          wave cycles spent on each, and `bank_conflicts`: source lines whose accesses of LDS take
          more `cycles` than the `least` ones without conflicts.
        - `roofline`: for each timed train workload its dimensions `dims`, `seconds`,
          `roofline_seconds` and `share`, the roofline's time over the kernel's.
    """
    if not evaluation.kernels:
        return {}
    place = profiled_workload(evaluation)
    return {
        "clock": str(evaluation.clock),
        "workload": None if place is None else dict(place.dims),
        "kernels": [_kernel(kernel) for kernel in evaluation.kernels],
        "roofline": [
            _distance(result)
            for result in evaluation.by_split(Split.TRAIN)
            if result.candidate_seconds is not None
        ],
    }


def _kernel(kernel: KernelFacts) -> dict[str, object]:
    facts: dict[str, object] = {
        "name": plain_name(kernel.name),
        "bound_by": kernel.bound_by,
        "seconds": kernel.seconds,
        "launches": kernel.launches,
        "vgprs": kernel.vgprs,
        "sgprs": kernel.sgprs,
        "lds_bytes": kernel.lds_bytes,
        "spilled": kernel.vgpr_spills + kernel.sgpr_spills,
        "waves_per_simd": kernel.waves_per_simd,
        "occupancy_limiter": kernel.occupancy_limiter,
    }
    profile = launch_profile(kernel.profile)
    if profile:
        facts |= {
            "stalls": profile.get("stalls", {}),
            "of_peak": profile.get("of_peak", {}),
            "hottest": _hottest(profile.get("lines") or profile.get("hot", ())),
            "bank_conflicts": [
                {"source": e["source"], "cycles": e["cycles"], "least": e["least"]}
                for e in profile.get("bank_conflicts", ())
            ],
        }
    return inert_object(facts)


def _hottest(entries: Sequence[ProfiledPlace]) -> list[dict[str, object]]:
    """Sums the shares of hot instructions by source line, the hottest first."""
    shares: dict[str, float] = {}
    for entry in entries:
        if entry.get("source"):
            shares[entry["source"]] = shares.get(entry["source"], 0.0) + entry["share"]
    ordered = sorted(shares.items(), key=lambda item: -item[1])[:HOTTEST]
    return [{"line": line, "share": round(share, 4)} for line, share in ordered]


def _distance(result: WorkloadResult) -> dict[str, object]:
    return {
        "dims": dict(result.dims),
        "seconds": result.candidate_seconds,
        "roofline_seconds": result.roofline_seconds,
        "share": roofline_share(result),
    }
