"""`python -m benchmarks arena-flydsl`: the table of the arena's FlyDSL tasks, and their figures.

A harness ran if it printed its own verdict. What it judged is stated beside: a kernel of the task,
our kernel, or only the task's reference, because the task gives a stub.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from benchmarks.marks import filled
from benchmarks.outside.arena import SUITE, TIMES, WRITTEN
from kernel_gym.commands.common import one_line_errors

if TYPE_CHECKING:
    from benchmarks.figures import BenchmarkEntry, Subject
    from benchmarks.renewal import NewEntry

PAGE = Path("docs/flydsl.md")
ROWS = Path("benchmarks/results/outside/arena-flydsl.jsonl")
"""The stored records of the tasks; `python -m benchmarks outside --earlier` continues from them."""
PART, SUBJECT, COMMAND = "arena", "arena-flydsl", "python -m benchmarks arena-flydsl"
VERDICTS = ("its own verdict", "values differ", "its own assertion")
"""The reasons of a failure that the harness itself stated."""
NOT_JUDGED = ("time limit", "not run")
_RUN = "python -m benchmarks outside --only arena-flydsl --out runs/arena"
_HEAD = (
    "| category | what its harness judges | tried | harness ran | passes "
    "| passes with `--bounds warn` | fails | not in time | cannot run |",
    "|---|---|--:|--:|--:|--:|--:|--:|--:|",
)
_WORDS = {"warns": "passes with `--bounds warn`"}
_RAN = ("passes", "warns", "fails")
_ENDS = (*_RAN, "not in time", "cannot run")
"""How the harness of a task can end, in the order of the table's columns."""


def arena_flydsl(
    result: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, help="outside.json of the run.")
    ],
) -> None:
    """Write the table of the arena's FlyDSL tasks into its page; store their figures and records.

    Example: python -m benchmarks arena-flydsl runs/arena-flydsl/outside.json
    """
    from benchmarks.renewal import entry_maker, store

    content = json.loads(result.read_text(encoding="utf-8"))
    records, planned = content["records"], content["planned"][SUITE]
    with one_line_errors():
        page = PAGE.read_text(encoding="utf-8")
        part = f"{counts_table(records)}\n{causes_table(records)}"
        PAGE.write_text(filled(PAGE, page, PART, COMMAND, part), encoding="utf-8")
        store(SUBJECT, figures(records, planned, entry_maker(SUBJECT)))
        ROWS.parent.mkdir(exist_ok=True)
        kept = [record for suite in (SUITE, WRITTEN, TIMES) for record in _of(suite, records)]
        ROWS.write_text("".join(f"{json.dumps(record)}\n" for record in kept), encoding="utf-8")


def ending(record: Mapping[str, Any]) -> str:
    """Returns how the harness of a task ended; it "warns" where it passes with `--bounds warn`."""
    if record["outcome"] == "passed":
        return "passes"
    if record["reason"].endswith("passes with --bounds warn"):
        return "warns"
    if record["reason"] in VERDICTS:
        return "fails"
    return "not in time" if record["reason"] in NOT_JUDGED else "cannot run"


def counts_table(records: Sequence[Mapping[str, Any]]) -> str:
    """Returns the table with a row for each category and kind of kernel.

    Args:
        records: From `run_program`, of the suites of `benchmarks.outside.arena`.
    """
    groups: dict[tuple[str, str], Counter[str]] = {}
    for suite in (SUITE, WRITTEN):
        for record in _of(suite, records):
            key = f"`{record['name'].partition('/')[0]}`", record["candidate"]
            groups.setdefault(key, Counter())[ending(record)] += 1
    rows = [_row(*key, counts) for key, counts in groups.items()]
    total = Counter(map(ending, each_task(records)))
    return "\n".join([*_HEAD, *rows, _row("**all**", "each task once", total)]) + "\n"


def each_task(records: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Returns one record for each task: that of the task as it is, if there is one."""
    named = {record["name"]: record for record in _of(WRITTEN, records)}
    return list((named | {record["name"]: record for record in _of(SUITE, records)}).values())


def _row(category: str, kernel: str, counts: Counter[str]) -> str:
    ran = sum(counts[name] for name in _RAN)
    cells = (category, kernel, counts.total(), ran, *(counts[name] for name in _ENDS))
    return f"| {' | '.join(map(str, cells))} |"


def causes_table(records: Sequence[Mapping[str, Any]]) -> str:
    """Returns the table of the tasks that did not pass, by their cause."""
    causes: dict[tuple[str, str], list[str]] = {}
    for record in [*_of(SUITE, records), *_of(WRITTEN, records)]:
        if record["outcome"] != "passed":
            cause = ending(record), record["reason"]
            causes.setdefault(cause, []).append(_short(record["name"]))
    rows = (
        f"| {_WORDS.get(end, end)} | {reason} | {', '.join(names)} |"
        for (end, reason), names in causes.items()
    )
    return "\n".join(["| harness | reason | tasks |", "|---|---|---|", *rows]) + "\n"


def figures(records: Sequence[Mapping[str, Any]], planned: int, new_entry: NewEntry) -> Subject:
    """Returns the figures of the run.

    Args:
        records: As for `counts_table`. A record without `processor_seconds` is of a run of which
            only the counts are left.
        planned: How many tasks there are; a run may have been stopped before the last one.
        new_entry: From `entry_maker`.
    """
    from benchmarks.figures import Goal, Subject
    from benchmarks.renewal import rounded

    tasks = each_task(records)
    ends = Counter(map(ending, tasks))
    ran = sum(ends[name] for name in _RAN)
    unit, tried = f"of {planned}", f"{len(tasks)} tasks were tried"
    timed_runs = [record["processor_seconds"] for record in tasks if "processor_seconds" in record]
    goal = Goal(text="at least 100", met=ran >= 100)

    def entry(name: str, metric: str, value: object, **more: object) -> BenchmarkEntry:
        return new_entry(id=name, metric=metric, value=value, command=_RUN, **more)

    timed, written = _of(TIMES, records), _of(WRITTEN, records)
    return Subject(
        title="AgentKernelArena's FlyDSL tasks with their own harness",
        entries=(
            entry(
                "arena-ran",
                "Harness reached its own verdict",
                ran,
                unit=unit,
                goal=goal,
                note=tried,
            ),
            entry("arena-passes", "Harness passes", ends["passes"], unit=unit),
            entry(
                "arena-written",
                "Harness passes our kernel in place of a stub",
                sum(ending(record) == "passes" for record in written),
                unit=f"of {len(written)}",
            ),
            entry(
                "arena-times",
                "Performance command of the task ends",
                sum(record["outcome"] == "passed" for record in timed),
                unit=f"of {len(timed)} tried",
            ),
            entry(
                "arena-seconds",
                f"Compile and correctness commands of {len(timed_runs)} tasks",
                rounded(sum(timed_runs), 0),
                unit="processor seconds",
                clock="measured",
            ),
        ),
    )


def _of(suite: str, records: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [record for record in records if record["suite"] == suite]


def _short(name: str) -> str:
    """Returns the name of a task without its category and the ending that most have."""
    return f"`{name.partition('/')[2].removesuffix('_kernel')}`"
