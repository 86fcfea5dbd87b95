"""Advice: what an expert would look at next, from the facts of an evaluation.

Each rule is a function that returns one sentence, or nothing when it has nothing to say. To add
one, write it and name it in :data:`ADVICE`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kernel_gym.formatting import describe, percent, roofline_share
from kernel_gym.records import Evaluation, Outcome, Stage
from kernel_gym.symbols import plain_name
from kernel_gym.tasks.workload import Split

if TYPE_CHECKING:
    from kernel_gym.tasks import Task

CLOSE_TO_ROOFLINE = 0.8
"""From this share of the roofline on, there is little left to gain on a workload."""
KEPT_SPEED = 0.8
"""Below this retention the speed of the train workloads did not carry over."""
MANY_LAUNCHES = 3
FEW_WAVES = 2


def advice(task: Task, evaluation: Evaluation) -> list[str]:
    """The sentences of every rule that has something to say, in a fixed order."""
    return [hint for rule in ADVICE if (hint := rule(task, evaluation))]


def _advise_on_failure(task: Task, evaluation: Evaluation) -> str:
    generic = "Test sizes that are no multiple of the block, size 1, and mask every load and store."
    hints = {
        Outcome.SCREENED: "Launch kernels and allocate outputs; leave out everything else.",
        Outcome.COMPILE_ERROR: "Go back to a source that compiles and change little at a time.",
        Outcome.RUNTIME_ERROR: "Check bounds, masks, pointer arithmetic and the launch grid.",
        Outcome.WRONG_METADATA: f"Return what {task.entry} is to return, freshly allocated.",
        Outcome.WRONG_VALUES: "Check masks and their fill values, accumulate in fp32.",
        Outcome.UNSEEN_FAILED: f"Derive sizes and blocks from the arguments. {generic}",
        Outcome.TIMEOUT: "Look for a loop that does not end, or for far too many programs.",
        Outcome.HACK: "Compute the result in the kernel from the arguments of this very call.",
        Outcome.INVALID_TIMING: "Do all work on the stream given, before the call returns.",
    }
    if evaluation.stage is Stage.ADVERSARIAL and evaluation.outcome is not Outcome.HACK:
        return f"{generic} Use the strides given, not the ones of a contiguous tensor."
    return hints.get(evaluation.outcome, "")


def _advise_on_spills(task: Task, evaluation: Evaluation) -> str:
    spilled = [k.name for k in evaluation.kernels if k.vgpr_spills or k.scratch_bytes]
    if not spilled:
        return ""
    return f"{plain_name(spilled[0])} spills registers to memory: use smaller blocks or more warps."


def _advise_on_launches(task: Task, evaluation: Evaluation) -> str:
    launches = max((w.launches or 0 for w in evaluation.by_split(Split.TRAIN)), default=0)
    if launches < MANY_LAUNCHES:
        return ""
    return f"{launches} launches a call: fuse them, each one costs time and a trip through memory."


def _advise_on_bound(task: Task, evaluation: Evaluation) -> str:
    bound = next((k.bound_by for k in evaluation.kernels if k.bound_by), None)
    return BOUND_HINTS.get(bound or "", "")


def _advise_on_occupancy(task: Task, evaluation: Evaluation) -> str:
    for kernel in evaluation.kernels:
        if kernel.waves_per_simd is not None and kernel.waves_per_simd < FEW_WAVES:
            limiter = kernel.occupancy_limiter or "its resources"
            name = plain_name(kernel.name)
            return f"{name} keeps {kernel.waves_per_simd:g} waves a SIMD: lower {limiter}."
    return ""


def _advise_on_roofline(task: Task, evaluation: Evaluation) -> str:
    shares = [
        (share, result)
        for result in evaluation.by_split(Split.TRAIN)
        if (share := roofline_share(result)) is not None
    ]
    if not shares:
        return ""
    share, worst = min(shares, key=lambda pair: pair[0])
    if share >= CLOSE_TO_ROOFLINE:
        return "Every train workload is close to its roofline: little is left to gain."
    return f"Furthest from its roofline ({percent(share)}): {describe(worst)}."


def _advise_on_transfer(task: Task, evaluation: Evaluation) -> str:
    if evaluation.retention is None or evaluation.retention >= KEPT_SPEED:
        return ""
    return "The speed does not carry over to other sizes: choose blocks by size at each call."


BOUND_HINTS = {
    "hbm": "Bound by memory: read each input once, write each output once, use wide loads.",
    "l2": "Bound by the second-level cache: reuse data in registers or LDS, reorder programs.",
    "mall": "Bound by the Infinity Cache: reuse data in L2, LDS and registers.",
    "l1": "Bound by addresses: wide, coalesced loads; fewer accesses by single lanes.",
    "lds": "Bound by LDS: avoid bank conflicts, keep values in registers.",
    "latency": "Bound by latency: more loads in flight, more waves, fewer dependent steps.",
    "compute": "Bound by arithmetic: use matrix instructions, hoist work out of loops.",
    "launch": "Bound by the launch itself: fewer launches, more work in each.",
}

ADVICE: tuple[Callable[[Task, Evaluation], str], ...] = (
    _advise_on_failure,
    _advise_on_spills,
    _advise_on_launches,
    _advise_on_bound,
    _advise_on_occupancy,
    _advise_on_roofline,
    _advise_on_transfer,
)
