"""Feedback: the text that a policy reads after a submission.

The text depends on the evaluation only. It has no paths, process ids or wall-clock times, so equal
evaluations give equal text. It shows values and times of train workloads. For adversarial and
unseen workloads it says that they failed and how, but never with which dimensions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kernel_gym.advice import advice
from kernel_gym.formatting import (
    NOTHING,
    describe,
    duration,
    factor,
    launch_part,
    percent,
    profiled_workload,
    roofline_share,
)
from kernel_gym.inert import quoted, shortened
from kernel_gym.records import (
    COMPILER_RACE,
    COMPILING,
    MISCOMPILED,
    RATIO_CLAMP,
    Element,
    Evaluation,
    KernelFacts,
    Outcome,
    Stage,
    WorkloadResult,
    clamped,
)
from kernel_gym.sim.timing.launch_profile import ProfiledPlace, launch_profile
from kernel_gym.symbols import plain_name
from kernel_gym.tasks.workload import Split

if TYPE_CHECKING:
    from kernel_gym.tasks import Task

MAX_CHARS = 4000
MAX_DETAIL_CHARS = 1800
SHOWN = 4
"""Most entries of each kind in the profile of a kernel."""
MAX_NAME = 80
"""Most characters of the name of a kernel or source file."""

HEADLINE = {
    Outcome.PASSED: "Correct on every workload",
    Outcome.SCREENED: "Refused before building: the source breaks a rule",
    Outcome.COMPILE_ERROR: "Does not compile",
    Outcome.RUNTIME_ERROR: "Failed while running",
    Outcome.WRONG_METADATA: "Wrong output type, shape or layout",
    Outcome.WRONG_VALUES: "Wrong values",
    Outcome.UNSEEN_FAILED: "Right on the shapes shown, wrong on others",
    Outcome.TIMEOUT: "Took too long and was stopped",
    Outcome.HACK: "Refused: the result was not earned by computing it",
    Outcome.INVALID_TIMING: "Correct, but the timing cannot be trusted",
    Outcome.INFRA: "Not evaluated: the machine failed, not your source. Submit it again",
}

REPORTED = (Outcome.SCREENED, Outcome.COMPILE_ERROR, Outcome.RUNTIME_ERROR, Outcome.TIMEOUT)
"""Outcomes with a message that the candidate may have written."""
HIDDEN_STAGES = {
    Stage.ADVERSARIAL: "an adversarial workload (odd sizes, strides or values)",
    Stage.UNSEEN: "an unseen workload (other sizes than the train workloads)",
}
COMPILER_HEADLINE = (
    "Not judged: every result is right, but Triton's compiler has put a race into the machine code "
    "of your kernel, which hardware can lose. You are not to blame. Other code may help: another "
    "number of warps or block size, or a loop or a reduction in place of a scan."
)
"""The feedback if the compiler has made a race."""
MISCOMPILED_HEADLINE = (
    "Not judged: the values are wrong, but the compiler is at fault, not your kernel: all values "
    "are right when Triton compiles it without its optional passes. You are not to blame. Triton "
    "3.7 and 3.8 take a comparison with <, <=, > or >= behind a loop of bounded length, or of a "
    "histogram, for a constant. Compare with == or !=, compare floats, or compute the condition "
    "from the loop's bound."
)
"""The feedback if the compiler has made wrong code."""
HIDDEN_CAUSES = {
    COMPILING: f"Triton was {COMPILING} a kernel for it when the time ended",
    "out of bounds": "a kernel accesses memory out of bounds",
    "out-of-bounds": "a kernel accesses memory out of bounds",
    "uninitialised": "a kernel reads memory that was never written",
    "lost write": "lanes store different values to one address at once",
    "s_waitcnt": "a load or a write is not waited for before its register or address is used",
    "deadlock": "waves wait for each other for ever",
    "not aligned": "an access is not aligned as its instruction needs",
    "launched": "no kernel of yours was launched",
    "race": "waves access the same address without a barrier between them",
    "not written": "an output was not written",
}
"""Fixed phrases for messages of hidden workloads, by keyword. Messages might name sizes."""
HIDDEN_FAILURES = {
    "no answer in time": "the call did not return in time",
    "does not compile": "it does not compile for it",
    "crash": "the call failed",
    "wrong shape": "an output has the wrong type, shape or layout",
}
"""Fixed phrases for the message of the evaluation, used if the workload's has no keyword."""
HIDDEN_TIMES = {
    Outcome.HACK: "A time is less than the memory traffic and arithmetic can take.",
    Outcome.INVALID_TIMING: "The times do not agree with each other.",
}
_FOLDERS = re.compile(r"(?<![\w/])/(?:[\w.+@~-]+/)+")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{9,}")


def feedback(task: Task, evaluation: Evaluation) -> str:
    """Returns the feedback on a submission.

    Args:
        task: The task that was evaluated.
        evaluation: The evaluation.

    Returns:
        At most 4000 characters of plain text.
    """
    sections = [_headline(evaluation)]
    if evaluation.outcome is not Outcome.PASSED:
        sections += [_failure(evaluation), _progress(evaluation)]
    sections += [_times(evaluation), _transfer(evaluation), _kernels(evaluation)]
    sections += [_advice(task, evaluation)]
    return _whole_lines("\n\n".join(section for section in sections if section))


def _headline(evaluation: Evaluation) -> str:
    if COMPILER_RACE in evaluation.labels:
        return COMPILER_HEADLINE
    if MISCOMPILED in evaluation.labels:
        return MISCOMPILED_HEADLINE
    text = HEADLINE[evaluation.outcome]
    if evaluation.outcome is not Outcome.PASSED:
        return f"{text} (stage: {evaluation.stage})."
    text += f". Speedup over the baseline: {factor(evaluation.speedup)} ({evaluation.clock})."
    return text + _limits(evaluation.by_split(Split.TRAIN))


def _limits(results: Sequence[WorkloadResult]) -> str:
    """Says how many ratios count as a limit in their mean, after a space; empty if none does."""
    timed = [result for result in results if result.timed and result.speedup is not None]
    low, high = map(factor, RATIO_CLAMP)
    text = f" {clamped(timed)} of {len(timed)} ratios are beyond {low} to {high}"
    return f"{text} and count as these limits." if clamped(timed) else ""


def _failure(evaluation: Evaluation) -> str:
    """Returns the message, the failed workload if it may be shown, and the tool's output."""
    if evaluation.outcome is Outcome.INFRA:
        return ""
    failed = next((result for result in evaluation.workloads if not result.passed), None)
    if evaluation.stage in HIDDEN_STAGES:
        return hidden_failure(evaluation)
    if evaluation.stage is Stage.TIME:
        return HIDDEN_TIMES.get(evaluation.outcome, "")
    message = _anonymous(evaluation.message)
    lines = _reported(evaluation, message)
    if failed is not None:
        lines += _shown_workload(failed, message)
    detail = shortened(_anonymous(evaluation.detail).strip(), MAX_DETAIL_CHARS)
    lines.append(quoted(detail) if detail else "")
    return "\n".join(line for line in lines if line)


def _reported(evaluation: Evaluation, message: str) -> list[str]:
    """Returns the message, as a quotation if the candidate or its compiler may have written it."""
    if evaluation.outcome not in REPORTED:
        return [message]
    return ["Reported by your submission or by its compiler:", quoted(message)]


def _shown_workload(failed: WorkloadResult, shown: str) -> list[str]:
    lines = [f"Workload: {describe(failed)}"]
    message = _anonymous(failed.message)
    if message not in shown:
        lines.append(quoted(message))
    if failed.element:
        lines.append(_element(failed.element))
    if failed.worst_error is not None and failed.worst_error > 1:
        lines.append(f"Worst error: {failed.worst_error:.3g} times what is allowed.")
    return lines


def hidden_failure(evaluation: Evaluation) -> str:
    """Returns the split and the kind of failure, and nothing that identifies the workload.

    The kind is a fixed phrase, since the message might name sizes that the policy must not know.

    Args:
        evaluation: An evaluation that failed on an adversarial or unseen workload.
    """
    where = f"Every train workload is right; it fails on {HIDDEN_STAGES[evaluation.stage]}: "
    if evaluation.message.startswith(where):  # its hidden data are removed already
        return evaluation.message
    failed = next((result for result in evaluation.workloads if not result.passed), None)
    how = _phrase(HIDDEN_CAUSES, failed.message if failed else "")
    if how is None and failed and (failed.element or failed.worst_error is not None):
        how = "values are wrong"
    how = how or _phrase(HIDDEN_FAILURES, evaluation.message) or "the result is wrong"
    return f"{where}{how}."


def _phrase(phrases: dict[str, str], message: str) -> str | None:
    """Returns the phrase of the first keyword that starts a word of the message."""
    text = message.lower()
    return next((phrase for key, phrase in phrases.items() if re.search(rf"\b{key}", text)), None)


def _element(element: Element) -> str:
    index = ", ".join(map(str, element.index))
    text = f"{element.output}[{index}]: expected {element.expected:.8g}, found {element.found:.8g}"
    error = abs(element.found - element.expected)
    if not math.isfinite(error):
        return text
    return f"{text} (off by {error:.3g}, allowed {element.tolerance:.3g})"


def _progress(evaluation: Evaluation) -> str:
    """Returns how many train workloads were right before the failure."""
    results = evaluation.by_split(Split.TRAIN)
    if not results or all(result.passed for result in results):
        return ""
    right = sum(result.passed for result in results)
    return f"Train workloads right before it: {right}. The ones after it were not tried."


def _times(evaluation: Evaluation) -> str:
    """Returns one line per train workload: times, launches, speedup, share of the roofline."""
    timed = [w for w in evaluation.by_split(Split.TRAIN) if w.candidate_seconds is not None]
    if not timed:
        return ""
    rows = [("workload", "baseline", "yours", "launch", "speedup", "roofline", "of roofline")]
    rows += [
        (
            describe(result),
            duration(result.baseline_seconds),
            duration(result.candidate_seconds),
            launch_part(result),
            factor(result.speedup),
            duration(result.roofline_seconds),
            percent(roofline_share(result)),
        )
        for result in timed
    ]
    return f"Times of the train workloads ({evaluation.clock}):\n" + _columns(rows)


def _transfer(evaluation: Evaluation) -> str:
    """Returns the speedup on unseen workloads."""
    if evaluation.unseen_speedup is None:
        return ""
    kept = "" if evaluation.retention is None else f", {percent(evaluation.retention)} of train"
    text = f"On unseen workloads: {factor(evaluation.unseen_speedup)} ({evaluation.clock}){kept}."
    return text + _limits(evaluation.by_split(Split.UNSEEN))


def _kernels(evaluation: Evaluation) -> str:
    """Returns one line per kernel: its compiled form and its limits, on one workload."""
    lines = [_kernel(kernel) for kernel in evaluation.kernels]
    if not lines:
        return ""
    result = profiled_workload(evaluation)
    where = "" if result is None else f" for {describe(result)}"
    return "\n".join([f"Kernels as compiled{where}:", *lines])


def _kernel(kernel: KernelFacts) -> str:
    accumulators = f" ({kernel.agprs} of them AGPRs)" if kernel.agprs else ""
    parts = [f"{kernel.vgprs} VGPRs{accumulators}", f"{kernel.sgprs} SGPRs"]
    if kernel.vgpr_spills or kernel.sgpr_spills:
        parts.append(f"{kernel.vgpr_spills + kernel.sgpr_spills} registers spilled")
    if kernel.scratch_bytes:
        parts.append(f"{kernel.scratch_bytes} B scratch")
    parts += [f"{kernel.lds_bytes} B LDS", f"{kernel.instructions} instructions"]
    if kernel.launches > 1:
        parts.append(f"{kernel.launches} launches")
    if kernel.waves_per_simd is not None:
        limiter = f" (limited by {kernel.occupancy_limiter})" if kernel.occupancy_limiter else ""
        parts.append(f"{kernel.waves_per_simd:g} waves a SIMD{limiter}")
    if kernel.bound_by:
        parts.append(f"bound by {kernel.bound_by}")
    name = plain_name(kernel.name)[:MAX_NAME]
    return "\n".join([f"  {name}: " + ", ".join(parts), *_profile(kernel)])


def _profile(kernel: KernelFacts) -> list[str]:
    """Returns where the longest kernel spends its time."""
    if not kernel.profile:
        return []
    profile = launch_profile(kernel.profile)
    waits = [f"{name} {percent(share)}" for name, share in profile.get("stalls", {}).items()]
    entries = profile.get("lines") or profile.get("hot", ())
    hot = [_hot(entry) for entry in entries if entry["source"]]
    reached = [
        f"{name} {percent(share)}" for name, share in profile.get("of_peak", {}).items() if share
    ]
    conflicts = [
        f"{entry['source'][-MAX_NAME:]} {entry['cycles']:g} cycles an access of LDS, "
        f"{entry['least']:g} without"
        for entry in profile.get("bank_conflicts", ())
        if entry["source"]
    ]
    lines = [("reaches of its peak", reached), ("waves spend", waits), ("hottest", hot)]
    lines += [("bank conflicts", conflicts)]
    return [f"    {what}: {', '.join(entries[:SHOWN])}" for what, entries in lines if entries]


def _hot(entry: ProfiledPlace) -> str:
    """Describes a source line on which waves spend time, and its dearest instruction."""
    mnemonic = entry["text"].partition(" ")[0][:MAX_NAME]
    return f"{entry['source'][-MAX_NAME:]} {percent(entry['share'])} ({mnemonic})"


def _advice(task: Task, evaluation: Evaluation) -> str:
    hints = advice(task, evaluation)
    return "\n".join(["Next:", *(f"  - {hint}" for hint in hints)]) if hints else ""


def _columns(rows: Sequence[tuple[str, ...]]) -> str:
    """Aligns the first column left and the others right, and drops columns without a value."""
    kept = [i for i in range(len(rows[0])) if any(row[i] != NOTHING for row in rows[1:])]
    rows = [tuple(row[i] for i in kept) for row in rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        numbers = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        lines.append("  " + "  ".join([row[0].ljust(widths[0]), *numbers]))
    return "\n".join(lines)


def _anonymous(text: str) -> str:
    """Removes folders and addresses, which differ between runs."""
    return _ADDRESS.sub("0x...", _FOLDERS.sub("", text))


def _whole_lines(text: str) -> str:
    """Removes whole lines in the middle, since a part of a line could look like another line."""
    if len(text) <= MAX_CHARS:
        return text
    gap = "\n[...]\n"
    half = (MAX_CHARS - len(gap)) // 2
    return text[:half].rpartition("\n")[0] + gap + text[-half:].partition("\n")[2]
