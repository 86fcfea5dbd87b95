"""`python -m benchmarks writer-retries`: retrying against learning, for a policy that writes.

It reads two runs of `kernel-gym eval --samples`, before and after GRPO, on the same held-out
graphs: what more samples of the first policy reach, and what one sample of the second does (GEAK
calls more samples parallel scaling, arXiv 2507.23194).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.figures import BenchmarkEntry, Subject
from benchmarks.renewal import MACHINE, NewEntry, entry_maker, store
from benchmarks.writer import estimate_entry
from kernel_gym.analysis.estimators import Estimate, paired
from kernel_gym.analysis.metrics import EpisodeAttempt, at_k, attempts, by_task
from kernel_gym.commands.common import one_line_errors
from kernel_gym.storage.run_store import RunStore

SUBJECT = "training-retries"
COMMAND = "python -m benchmarks writer-retries runs/retries/sft runs/retries/final"
Tasks = Mapping[str, list[EpisodeAttempt]]
"""Attempts by task."""


def writer_retries(
    sft: Annotated[Path, typer.Argument(help="The run of the policy before GRPO.")],
    final: Annotated[Path, typer.Argument(help="The run of the policy after it.")],
    machine: Annotated[str, typer.Option(help="Where they ran, a key of machines.json.")] = MACHINE,
) -> None:
    """Compare more samples of a policy with fewer of the trained one, and store the figures.

    Example: python -m benchmarks writer-retries runs/retries/sft runs/retries/final
    """
    with one_line_errors():
        runs = {"after SFT": sft, "after GRPO": final}
        tasks = {when: by_task(attempts(RunStore(run))) for when, run in runs.items()}
        results = figures(tasks, entry_maker(SUBJECT, machine))
        store(SUBJECT, results)
    for entry in results.entries:
        typer.echo(f"{entry.metric}: {entry.value} {entry.interval or ''}")


def figures(runs: Mapping[str, Tasks], new_entry: NewEntry) -> Subject:
    """Returns pass@k of each run, and one sample after GRPO less all samples after SFT.

    Args:
        runs: The attempts before and after GRPO, on the same tasks, by when.
        new_entry: Makes an entry of this subject.
    """
    entries = [entry for when, tasks in runs.items() for entry in _of_run(when, tasks, new_entry)]
    (_, before), (_, after) = runs.items()
    shared = [task for task in before if task in after]
    most = max(len(before[task]) for task in shared)
    any_before = [max(a.correct for a in before[task]) for task in shared]
    one_after = [sum(a.correct for a in after[task]) / len(after[task]) for task in shared]
    difference = paired(any_before, one_after)
    metric = f"One sample after GRPO, minus any of {most} after SFT"
    entries.append(_entry(new_entry, "learning", metric, difference, paired_tasks=True))
    title = "Retrying against learning (writer_gpu.toml, seed 1)"
    return Subject(title=title, entries=tuple(entries))


def _of_run(when: str, tasks: Tasks, new_entry: NewEntry) -> list[BenchmarkEntry]:
    phase = when.split()[-1].lower()
    rows = at_k([attempt for own in tasks.values() for attempt in own])
    return [
        _entry(
            new_entry,
            f"{phase}-pass-{row['k']}",
            f"Graphs with a correct kernel among {row['k']} samples, {when}, {len(tasks)} graphs",
            row["pass"],
        )
        for row in rows
    ]


def _entry(
    new_entry: NewEntry, name: str, metric: str, estimate: object, paired_tasks: bool = False
) -> BenchmarkEntry:
    assert isinstance(estimate, Estimate)

    def named(id: str, **fields: object) -> BenchmarkEntry:
        return new_entry(id=f"retries-{id}", command=COMMAND, **fields)

    unit = "" if paired_tasks else "of graphs"
    return estimate_entry(named, name, metric, unit, estimate, paired_tasks=paired_tasks)
