"""The page of tasks: which negative control fails where, from the stored verdicts."""

from __future__ import annotations

from kernel_gym.tasks import get_problem, problem_names
from kernel_gym.tasks.admission import FAILS, Status, Verdict, stored_verdict
from kernel_gym.tasks.controls import CONTROLS
from kernel_gym.tasks.task import Mode, modes_of

_INTRODUCTION = """\
# Tasks and their negative controls

Written by `kernel-gym tasks controls > docs/tasks.md` from the verdicts that `kernel-gym admit`
keeps beside each problem. A control is a wrong answer that every task must tell from a right one
(`tasks/controls.py`): `x` says that the judge's check of values fails it, `-` that it does not
apply. `zeros`, `stale output` and `no-op launch` also go through a whole evaluation as kernels.

Head-room is the geometric mean, over train workloads of the simulator's size, of the baseline's
time over that of the roofline and one launch; both are modelled, not measured. A task below
1.25 is saturated: there is nothing left to gain, and suites leave it out.

"""


def control_table() -> str:
    """The page, as Markdown."""
    verdicts = {name: stored_verdict(get_problem(name)) for name in problem_names()}
    heads = [*(name.replace(" ", "<br>") for name in CONTROLS)]
    lines = [
        "| problem | category | level | " + " | ".join(heads) + " |",
        "|---|---|---|" + ":-:|" * len(heads),
        *(_controls_row(name, verdict) for name, verdict in verdicts.items()),
    ]
    rooms = [
        "| problem | " + " | ".join(Mode) + " |",
        "|---|" + "--:|" * len(Mode),
        *(_rooms_row(name, verdict) for name, verdict in verdicts.items()),
    ]
    tables = "\n".join(lines) + "\n\n## Head-room\n\n" + "\n".join(rooms)
    return _INTRODUCTION + _counts(verdicts) + "\n\n" + tables + "\n"


def _counts(verdicts: dict[str, Verdict | None]) -> str:
    found = [
        verdict.status(mode) if verdict else Status.UNKNOWN
        for name, verdict in verdicts.items()
        for mode in modes_of(get_problem(name))
    ]
    counts = ", ".join(f"{found.count(s)} {s}" for s in Status if s in found)
    return f"{len(verdicts)} problems, {len(found)} tasks: {counts}."


def _controls_row(name: str, verdict: Verdict | None) -> str:
    problem = get_problem(name)
    marks = [_mark(verdict.controls.get(c, "")) if verdict else "?" for c in CONTROLS]
    return f"| {name} | {problem.category} | {problem.level} | {' | '.join(marks)} |"


def _mark(found: str) -> str:
    if found == FAILS:
        return "x"
    return "-" if found.startswith("does not apply") else f"**{found or '?'}**"


def _rooms_row(name: str, verdict: Verdict | None) -> str:
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
