"""The page of tasks: the result of each negative control, from the stored verdicts."""

from __future__ import annotations

import math
import statistics

from kernel_gym.tasks import get_problem, problem_names
from kernel_gym.tasks.controls.answers import CONTROLS
from kernel_gym.tasks.status import Status
from kernel_gym.tasks.task import Mode, modes_of
from kernel_gym.tasks.verdicts import FAILS, HEAD_ROOM, AdmissionVerdict, stored_verdict

_INTRODUCTION = """\
# Tasks and their negative controls

This page is made with the site (`python -m benchmarks tasks` prints it) from the verdicts that
`kernel-gym admit` stores with each problem. A control is a wrong answer that every task must refuse
(`kernel_gym/tasks/controls/answers.py`). `x` means that the judge's check of values refuses it, `-`
that it does not apply, and `?` that the verdict is older than the control. `zeros`, `stale output`
and `no-op launch` also go through complete evaluations as kernels.

Head-room is the geometric mean, over train workloads, of the baseline's time divided by the time
of the roofline with one launch. It is modelled with the simulator's sizes, and measured with full
sizes on the GPUs that are named. A task with a head-room below 1.25 on every device is saturated:
little can be gained, and suites leave it out. Suites for one device, such as `simulated`, leave out
what has so little there.

"""


def tasks() -> None:
    """Print which negative control fails on which problem, and the head-room, as Markdown.

    Example: python -m benchmarks tasks
    """
    print(control_table(), end="")


def control_table() -> str:
    """Returns the page as Markdown."""
    verdicts = {name: stored_verdict(get_problem(name)) for name in problem_names()}
    heads = [*(name.replace(" ", "<br>") for name in CONTROLS)]
    lines = [
        "| problem | category | level | " + " | ".join(heads) + " |",
        "|---|---|---|" + ":-:|" * len(heads),
        *(_controls_row(name, verdict) for name, verdict in verdicts.items()),
    ]
    known = {device for verdict in verdicts.values() if verdict for device in verdict.devices}
    simulated = sorted(name for name in known if name.startswith("sim:"))
    parts = ["\n".join(lines), _rooms("Head-room, modelled", verdicts, simulated)]
    for gpu in sorted(known.difference(simulated)):
        parts.append(_rooms(f"Head-room, measured on one {gpu}", verdicts, [gpu]))
    return _INTRODUCTION + _counts(verdicts) + "\n\n" + "\n\n".join(parts) + "\n"


def _rooms(title: str, verdicts: dict[str, AdmissionVerdict | None], devices: list[str]) -> str:
    """Returns a table of head-room by problem and mode: the largest on some devices."""
    selected = {name: _on(verdict, devices) for name, verdict in verdicts.items()}
    rooms = [v.head_room(mode) for v in selected.values() if v for mode in Mode]
    known = [room for room in rooms if room is not None]
    median = statistics.median(known or [math.nan])
    closed = sum(room <= HEAD_ROOM for room in known)
    lines = [
        f"## {title}\n\nMedian of all tasks: {median:.1f}. "
        f"{closed} of {len(known)} have {HEAD_ROOM} or less.\n",
        "| problem | " + " | ".join(Mode) + " |",
        "|---|" + "--:|" * len(Mode),
        *(_rooms_row(name, verdict) for name, verdict in selected.items()),
    ]
    return "\n".join(lines)


def _on(verdict: AdmissionVerdict | None, devices: list[str]) -> AdmissionVerdict | None:
    """Returns the part of a verdict for some devices."""
    if verdict is None:
        return None
    chosen = {name: modes for name, modes in verdict.devices.items() if name in devices}
    return verdict.model_copy(update={"devices": chosen})


def _counts(verdicts: dict[str, AdmissionVerdict | None]) -> str:
    statuses = [
        verdict.status(mode) if verdict else Status.UNKNOWN
        for name, verdict in verdicts.items()
        for mode in modes_of(get_problem(name))
    ]
    counts = ", ".join(f"{statuses.count(s)} {s}" for s in Status if s in statuses)
    return f"{len(verdicts)} problems, {len(statuses)} tasks: {counts}."


def _controls_row(name: str, verdict: AdmissionVerdict | None) -> str:
    problem = get_problem(name)
    marks = [_mark(verdict.controls.get(c, "")) if verdict else "?" for c in CONTROLS]
    return f"| {name} | {problem.category} | {problem.level} | {' | '.join(marks)} |"


def _mark(result: str) -> str:
    if result in (FAILS, ""):
        return "x" if result else "?"
    return "-" if result.startswith("does not apply") else f"**{result}**"


def _rooms_row(name: str, verdict: AdmissionVerdict | None) -> str:
    problem = get_problem(name)
    cells = []
    for mode in Mode:
        status = verdict.status(mode) if verdict else Status.UNKNOWN
        room = verdict.head_room(mode) if verdict else None
        if mode not in modes_of(problem):
            cells.append("")
        else:
            value = "?" if room is None else f"{room:.1f}"
            cells.append(value if status is Status.ADMITTED else f"{value} {status}")
    return f"| {name} | {' | '.join(cells)} |"
