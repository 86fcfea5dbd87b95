"""Advice: what to look at next, derived from the facts of an evaluation.

Each rule is a function that returns one sentence, or "" if it does not apply. To add a rule, write
a function and add it to :data:`ADVICE`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from kernel_gym.formatting import (
    describe,
    duration,
    launch_share,
    percent,
    profiled_workload,
    roofline_share,
)
from kernel_gym.records import COMPILING, Evaluation, Outcome, Stage
from kernel_gym.sim.timing.launch_profile import launch_profile
from kernel_gym.symbols import plain_name
from kernel_gym.tasks.workload import Split

if TYPE_CHECKING:
    from kernel_gym.tasks import Task

CLOSE_TO_ROOFLINE = 0.8
"""At this share of the roofline or more, little is left to gain on a workload."""
KEPT_SPEED = 0.8
"""Below this retention, the speed of the train workloads does not carry over."""
MANY_LAUNCHES = 3
FEW_WAVES = 2
MOSTLY_LAUNCH = 0.5
"""At this share of its time or more, a workload's launches dominate."""
LDS_STALLS = ("LDS queue", "LDS wait")
MUCH_LDS = 0.1
"""At this share of their time or more, waves wait for LDS so long that conflicts matter."""


def advice(task: Task, evaluation: Evaluation) -> list[str]:
    """Returns the sentences of all rules that apply, in a fixed order.

    For a kernel that fails there is only advice on the failure. Its speed does not matter yet.
    """
    rules = ADVICE if evaluation.outcome is Outcome.PASSED else (_advise_on_failure,)
    return [hint for rule in rules if (hint := rule(task, evaluation))]


def _advise_on_failure(task: Task, evaluation: Evaluation) -> str:
    generic = "Test sizes that are no multiple of the block, size 1, and mask every load and store."
    hints = {
        Outcome.SCREENED: "Launch kernels and allocate outputs; leave out everything else.",
        Outcome.COMPILE_ERROR: "Go back to a source that compiles and change little at a time.",
        Outcome.RUNTIME_ERROR: "Check bounds, masks, pointer arithmetic and the launch grid.",
        Outcome.WRONG_METADATA: f"Return what {task.entry} is to return, freshly allocated.",
        Outcome.WRONG_VALUES: "Check masks and their fill values, accumulate in fp32.",
        Outcome.UNSEEN_FAILED: f"Derive sizes and blocks from the arguments. {generic}",
        Outcome.TIMEOUT: "Look for a loop that does not end, for far too many programs, and for "
        "a block that grows with a size: the compiler needs minutes for a large one. Loop over it.",
        Outcome.HACK: "Compute the result in the kernel from the arguments of this very call.",
        Outcome.INVALID_TIMING: "Do all work on the stream given, before the call returns.",
    }
    if evaluation.outcome is Outcome.TIMEOUT and COMPILING in _messages(evaluation):
        return (
            "A block that grows with a size takes the compiler minutes once a lane has hundreds of "
            "elements of it. Loop over blocks of a few thousand, or use more warps (num_warps)."
        )
    if evaluation.outcome in (Outcome.TIMEOUT, Outcome.INFRA):
        return hints.get(evaluation.outcome, "")
    if evaluation.stage is Stage.ADVERSARIAL and evaluation.outcome is not Outcome.HACK:
        strided = "Use the strides given, not the ones of a contiguous tensor."
        return generic if task.language == "hip" else f"{generic} {strided}"
    shown = evaluation.stage not in (Stage.ADVERSARIAL, Stage.UNSEEN)
    cause = _cause(evaluation.message) if shown else ""
    if not cause and (evaluation.outcome, evaluation.stage) == (Outcome.WRONG_VALUES, Stage.TRAIN):
        cause = _odd_size(evaluation)
    return cause or hints.get(evaluation.outcome, "")


def _messages(evaluation: Evaluation) -> str:
    """Returns the message of the evaluation and those of its workloads."""
    return " ".join([evaluation.message, *(result.message for result in evaluation.workloads)])


def _odd_size(evaluation: Evaluation) -> str:
    """Names an axis that is a power of two in the right workloads and not in the wrong one."""
    right = [result for result in evaluation.by_split(Split.TRAIN) if result.passed]
    wrong = next((result for result in evaluation.by_split(Split.TRAIN) if not result.passed), None)
    if not right or wrong is None:
        return ""
    for axis, size in wrong.dims.items():
        sizes = {result.dims.get(axis, 0) for result in right}
        if _is_power(size) or not all(map(_is_power, sizes)):
            continue
        known = ", ".join(map(str, sorted(sizes)))
        return (
            f"Right with {axis} = {known}, wrong with {axis} = {size}, which fills no block: "
            "masked lanes count. Give masked loads the value that changes nothing: -inf for a "
            "maximum, 0 for a sum."
        )
    return ""


def _is_power(size: int) -> bool:
    """Whether a size is a power of two."""
    return size > 0 and size & (size - 1) == 0


def _cause(message: str) -> str:
    """Returns the advice for a failure that the message names."""
    texts = (text for cause, text in CAUSES.items() if re.search(cause, message))
    return _beyond_its_row(message) or next(texts, "")


_ROW_RACE = re.compile(
    r"race: (\d+) bytes into (output '[^']+') with rows of (\d+) bytes .* at ([\w.]+:\d+): .*"
    r"store.*, ([\w.]+:\d+), workgroup"
)


def _beyond_its_row(message: str) -> str:
    """The advice for two stores of one line near the start of a row: a mask is too wide."""
    race = _ROW_RACE.search(message)
    if race is None or race[4] != race[5]:
        return ""
    place, row = int(race[1]), int(race[3])
    if place < row or 8 * (place % row) >= row:
        return ""
    return (
        f"Both accesses are stores at {race[4]}, {place % row} bytes into a row of {race[2]}: one "
        "of them is probably beyond the end of the row before. Check the mask of this store, such "
        "as `<=` in place of `<`."
    )


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
    if bound != "launch":
        return BOUND_HINTS.get(bound or "", "")
    result = profiled_workload(evaluation)
    results = evaluation.by_split(Split.TRAIN) if result is None else (result,)
    if max((result.launches or 0 for result in results), default=0) > 1:
        return "Bound by the launches themselves: fewer of them, more work in each."
    return ""


def _advise_on_conflicts(task: Task, evaluation: Evaluation) -> str:
    for kernel in evaluation.kernels:
        profile = launch_profile(kernel.profile)
        stalls = profile.get("stalls", {})
        waiting = sum(stalls.get(name, 0.0) for name in LDS_STALLS)
        worst = next(iter(profile.get("bank_conflicts", ())), None)
        if worst and worst["source"] and waiting >= MUCH_LDS:
            return (
                f"An access of LDS at {worst['source']} takes {worst['cycles']:g} cycles, and "
                f"{worst['least']:g} without bank conflicts: pad or swizzle the tile's rows."
            )
    return ""


def _advise_on_launch_share(task: Task, evaluation: Evaluation) -> str:
    shares = [(launch_share(result) or 0.0, result) for result in evaluation.by_split(Split.TRAIN)]
    mostly = [(share, result) for share, result in shares if share >= MOSTLY_LAUNCH]
    if not mostly:
        return ""
    _, result = max(mostly, key=lambda pair: pair[0])
    return (
        f"On {len(mostly)} of {len(shares)} train workloads most of the time is the launch "
        f"({duration(result.launch_seconds)} of {duration(result.candidate_seconds)} on "
        f"{describe(result)}): only the rest can become shorter."
    )


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
    if min(share for share, _ in shares) >= CLOSE_TO_ROOFLINE:
        return "Every train workload is close to its roofline: little is left to gain."
    profiled = profiled_workload(evaluation)
    if profiled is not None and (share := roofline_share(profiled)) is not None:
        return f"Most is left to gain on {describe(profiled)} ({percent(share)} of its roofline)."
    share, worst = min(shares, key=lambda pair: pair[0])
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
}

CAUSES = {
    r"expected (one in )?(FlyDSL|TileLang)\b": "Write each kernel in the language that the task "
    "names, and keep the host code to launches and outputs.",
    "the source is empty": "Send the whole source in one fenced code block.",
    "is refused on device tensors": (
        "Compute this in a kernel of your own: around kernels only allocations, views and copies "
        "of tensors are allowed."
    ),
    r"\brace:": (
        "Order the two accesses: a barrier between them within a workgroup; an atomic, or another "
        "launch, across workgroups."
    ),
    "lost write:": "Let one lane write each address: reduce first, or use an atomic.",
    "s_waitcnt is missing": (
        "Wait for loads and writes in inline assembler before they are used. Without inline "
        "assembler the compiler has lost a wait, most often that of a barrier at the head of a "
        "loop: put the barrier at the end of the loop."
    ),
    "uninitialised": "Write registers and shared memory in every lane before they are read.",
    "deadlock:": "Let every wave of a workgroup reach each barrier, outside of branches.",
    "not aligned": "Use accesses as wide as the alignment of the address allows.",
    r"bytes of LDS|LDS of \d+ bytes": "Use smaller blocks or fewer stages: LDS is too small.",
    "^OutOfResources": "Use smaller blocks or fewer stages: the kernel needs too much of the GPU.",
    r"^\w*(Error|Exception|Interrupt|Exit)\b": "Fix the host code that raises this error.",
}
"""Hints by pattern in a message. The first match is used instead of the hint of the outcome."""

ADVICE: tuple[Callable[[Task, Evaluation], str], ...] = (
    _advise_on_failure,
    _advise_on_spills,
    _advise_on_launches,
    _advise_on_bound,
    _advise_on_conflicts,
    _advise_on_launch_share,
    _advise_on_occupancy,
    _advise_on_roofline,
    _advise_on_transfer,
)
