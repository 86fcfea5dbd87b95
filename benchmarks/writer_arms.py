"""`python -m benchmarks writer-arms`: what unseen shapes in the reward are worth.

It compares training runs that continue from one SFT checkpoint with equal budgets, and differ in
`gym.unseen` alone. All were assessed on the same draws of the same held-out graphs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.figures import BenchmarkEntry, Subject
from benchmarks.renewal import MACHINE, NewEntry, entry_maker, store
from benchmarks.writer import (
    bound,
    by_task,
    default_scores,
    estimate_entry,
    log_ratios,
    mean_of,
    right,
    right_on_shown,
    share_of,
)
from kernel_gym.analysis.estimators import paired, ratio
from kernel_gym.commands.common import one_line_errors
from kernel_gym.errors import InputError
from kernel_gym.training.assess import REPLIES
from kernel_gym.training.corpus import CorpusRow, read_corpus
from kernel_gym.training.scoring import Scored
from kernel_gym.training.train import CONFIG, FINAL, START

SUBJECT = "training-transfer"
COMMAND = "python -m benchmarks writer-arms runs/unpaid runs/once runs/each_step"
ARMS = {
    "unpaid": "paid on shown shapes alone",
    "once": "unseen shapes drawn once",
    "each_step": "unseen shapes drawn each step",
}
_FIRST = "after SFT"
_VALUES = {
    "right": ("Right on all shapes", right),
    "shown": ("Right on the shapes of the prompt", right_on_shown),
    "bound": ("Right on the shapes of the prompt and wrong on others", bound),
}
_SPEEDS = {"shown": "speedup", "new": "unseen_speedup"}
Replies = Mapping[str, list[CorpusRow]]
"""Replies by held-out task."""


def writer_arms(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, one for each arm.")],
    machine: Annotated[str, typer.Option(help="Where they ran, a key of machines.json.")] = MACHINE,
    workers: Annotated[int, typer.Option(min=1, help="Parallel evaluations.")] = 2,
) -> None:
    """Compare runs that differ in gym.unseen alone, and store their figures.

    Example: python -m benchmarks writer-arms runs/unpaid runs/once runs/each_step
    """
    with one_line_errors():
        configs = [json.loads((run / CONFIG).read_text(encoding="utf-8")) for run in runs]
        arms = arms_of(configs)
        held_out = sorted(configs[0]["tasks"]["held_out"])
        replies = {
            arm: _replies(run / FINAL, held_out) for arm, run in zip(arms, runs, strict=True)
        }
        first = _replies(runs[0] / START, held_out)
        defaults = default_scores(runs[0], configs[0], held_out, workers)
        results = figures(first, replies, defaults, entry_maker(SUBJECT, machine))
        store(SUBJECT, results)
    for entry in results.entries:
        typer.echo(f"{entry.metric}: {entry.value} {entry.unit} {entry.interval or ''}")


def arms_of(configs: list[dict[str, Any]]) -> list[str]:
    """Returns the arm of each configuration.

    Raises:
        InputError: Two runs are of one arm, or they differ in more than the arm and the folder.
    """
    arms = [config["gym"]["unseen"] for config in configs]
    if len(set(arms)) < len(arms):
        raise InputError(f"expected one run for each value of gym.unseen, not {', '.join(arms)}")
    rest = [{**c, "out": "", "gym": {**c["gym"], "unseen": "", "workers": 0}} for c in configs]
    for arm, own in zip(arms, rest, strict=True):
        keys = [key for key, value in own.items() if value != rest[0].get(key)]
        if keys:
            raise InputError(f"the runs {arms[0]} and {arm} differ in {', '.join(keys)}")
    return arms


def figures(
    first: Replies, arms: Mapping[str, Replies], defaults: dict[str, Scored], new_entry: NewEntry
) -> Subject:
    """Returns the figures of each arm, and the paired differences to the first one.

    Args:
        first: The replies of the checkpoint that all arms continue from.
        arms: The replies of each arm's last checkpoint to the same tasks.
        defaults: The evaluation of each task's default kernel.
        new_entry: Makes an entry of this subject.
    """

    def entry_of(id: str, **fields: Any) -> BenchmarkEntry:
        return new_entry(id=f"transfer-{id.replace('_', '-')}", command=COMMAND, **fields)

    entries = list(_of_arm("sft", _FIRST, first, defaults, entry_of))
    for arm, replies in arms.items():
        entries += _of_arm(arm, ARMS[arm], replies, defaults, entry_of)
    (base, before), *others = arms.items()
    for arm, after in others:
        tasks = [task for task in before if task in after]
        for name, (what, value) in _VALUES.items():
            means = [[mean_of(value, own[task]) for task in tasks] for own in (before, after)]
            metric = f"{what}: {ARMS[arm]}, less {ARMS[base]}"
            gain = paired(means[0], means[1])
            entry = estimate_entry(
                entry_of, f"{arm}-{name}-gain", metric, "", gain, paired_tasks=True
            )
            entries.append(entry)
    return Subject(title="What unseen shapes in the reward are worth", entries=tuple(entries))


def _of_arm(
    arm: str, when: str, tasks: Replies, defaults: dict[str, Scored], new_entry: NewEntry
) -> Iterator[BenchmarkEntry]:
    for name, (what, value) in _VALUES.items():
        share = share_of(dict(tasks), value)
        yield estimate_entry(new_entry, f"{arm}-{name}", f"{what}, {when}", "of replies", share)
    for name, shapes in _SPEEDS.items():
        logs = [list(log_ratios(own, defaults[task], shapes)) for task, own in tasks.items()]
        mean = ratio([sum(own) for own in logs], [len(own) for own in logs], np.exp)
        metric = f"Default kernel's time over that of right replies, {name} shapes, {when}"
        if mean.value is not None:
            entry_id = f"{arm}-speed-{name}"
            yield estimate_entry(new_entry, entry_id, metric, "times", mean, clock="modelled")


def _replies(folder: Path, tasks: list[str]) -> Replies:
    known = by_task(read_corpus(folder / REPLIES))
    return {task: known[task] for task in tasks if task in known}
