"""`python -m benchmarks writer-arms`: what unseen shapes in the reward are worth.

It compares training runs that continue from one SFT checkpoint with equal budgets, and differ in
`gym.unseen` alone. All were assessed on the same draws of the same held-out graphs. Figures of
other seeds are kept, and the mean over seeds follows from all of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.figures import RESULTS, BenchmarkEntry, Subject, load_benchmarks
from benchmarks.marks import filled
from benchmarks.renewal import MACHINE, NewEntry, entry_maker, store
from benchmarks.seeds import (
    ALL_SEEDS,
    beside_other_seeds,
    metric_of,
    name_of,
    seed_of,
    seed_part,
)
from benchmarks.writer import (
    bound,
    by_task,
    default_scores,
    estimate_entry,
    log_ratios,
    mean_of,
    reward,
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
    "unpaid": "paid only on shown shapes",
    "once": "unseen shapes drawn once",
    "each_step": "unseen shapes drawn in each step",
}
_FIRST = "after SFT"
_TITLE = "What unseen shapes in the reward are worth"
_VALUES = {
    "right": ("Correct on all shapes", right),
    "shown": ("Correct on the shapes of the prompt", right_on_shown),
    "bound": ("Correct on the shapes of the prompt, but wrong on others", bound),
}
_RISES = {"right": ("Correct on all shapes", right), "reward": ("Mean reward", reward)}
_SPEEDS = {"shown": "speedup", "new": "unseen_speedup"}
_PREFIX = "transfer"
PAGE = Path("docs/training-experiments.md")
_SHOWN = re.compile(r".*-(right|bound|speed-new|right-gain|right-rise|reward-rise)")
"""Figures that the page shows; the results have more."""
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
        new_entry = entry_maker(SUBJECT, machine)
        results = figures(first, replies, defaults, new_entry, configs[0]["seed"])
        stored = load_benchmarks(RESULTS).subjects.get(SUBJECT)
        others = stored.entries if stored else ()
        store(SUBJECT, beside_other_seeds(results, others, _PREFIX, new_entry))
        text = arms_page(
            PAGE.read_text(encoding="utf-8"), load_benchmarks(RESULTS).subjects[SUBJECT]
        )
        PAGE.write_text(text, encoding="utf-8")
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
    first: Replies,
    arms: Mapping[str, Replies],
    defaults: dict[str, Scored],
    new_entry: NewEntry,
    seed: int = 0,
) -> Subject:
    """Returns the figures of each arm, and its paired differences to SFT and to the first arm.

    Args:
        first: The replies of the checkpoint that all arms continue from.
        arms: The replies of each arm's last checkpoint to the same tasks.
        defaults: The evaluation of each task's default kernel.
        new_entry: Makes an entry of this subject.
        seed: The seed of the runs, of the corpus and of SFT too.
    """

    def entry_of(id: str, metric: str, **fields: Any) -> BenchmarkEntry:
        named = f"{_PREFIX}-{seed_part(seed)}{id.replace('_', '-')}"
        metric = f"{metric}, seed {seed}" if seed else metric
        return new_entry(id=named, metric=metric, command=COMMAND, **fields)

    entries = list(_of_arm("sft", _FIRST, first, defaults, entry_of))
    for arm, replies in arms.items():
        entries += _of_arm(arm, ARMS[arm], replies, defaults, entry_of)
        for name, (what, value) in _RISES.items():
            metric = f"{what}: {ARMS[arm]}, minus {_FIRST}"
            entries.append(
                _difference(f"{arm}-{name}-rise", metric, value, first, replies, entry_of)
            )
    (base, before), *others = arms.items()
    for arm, after in others:
        for name, (what, value) in _VALUES.items():
            metric = f"{what}: {ARMS[arm]}, minus {ARMS[base]}"
            entries.append(
                _difference(f"{arm}-{name}-gain", metric, value, before, after, entry_of)
            )
    return Subject(title=_TITLE, entries=tuple(entries))


def arms_page(text: str, subject: Subject) -> str:
    """Returns the page with a new table: a row for each figure, a column for each seed.

    Args:
        text: The page as it is.
        subject: The stored figures.

    Raises:
        InputError: The page lacks its mark.
    """
    seeds = sorted({seed_of(entry) for entry in subject.entries})
    rows: dict[str, dict[str, BenchmarkEntry]] = {}
    for entry in subject.entries:
        name = name_of(entry, _PREFIX)
        column = "mean" if ALL_SEEDS in entry.id else f"seed {seed_of(entry)}"
        if _SHOWN.fullmatch(name):
            rows.setdefault(name, {})[column] = entry
    columns = [*(f"seed {seed}" for seed in seeds), "mean"]
    lines = [f"| | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for row in rows.values():
        metric = metric_of(next(iter(row.values())))
        cells = [_cell(row[column]) if column in row else "" for column in columns]
        lines.append(f"| {metric} | {' | '.join(cells)} |")
    return filled(PAGE, text, SUBJECT, COMMAND, "\n".join(lines) + "\n")


def _cell(entry: BenchmarkEntry) -> str:
    if entry.interval is None:
        return f"{entry.value}"
    return f"{entry.value} ({entry.interval.low} to {entry.interval.high})"


def _difference(
    name: str,
    metric: str,
    value: Callable[[CorpusRow], float],
    before: Replies,
    after: Replies,
    new_entry: NewEntry,
) -> BenchmarkEntry:
    tasks = [task for task in before if task in after]
    means = [[mean_of(value, own[task]) for task in tasks] for own in (before, after)]
    gain = paired(means[0], means[1])
    return estimate_entry(new_entry, name, metric, "", gain, paired_tasks=True)


def _of_arm(
    arm: str, when: str, tasks: Replies, defaults: dict[str, Scored], new_entry: NewEntry
) -> Iterator[BenchmarkEntry]:
    for name, (what, value) in _VALUES.items():
        share = share_of(dict(tasks), value)
        yield estimate_entry(new_entry, f"{arm}-{name}", f"{what}, {when}", "of replies", share)
    for name, shapes in _SPEEDS.items():
        logs = [list(log_ratios(own, defaults[task], shapes)) for task, own in tasks.items()]
        mean = ratio([sum(own) for own in logs], [len(own) for own in logs], np.exp)
        metric = (
            f"Default kernel's time divided by the time of correct replies, {name} shapes, {when}"
        )
        if mean.value is not None:
            entry_id = f"{arm}-speed-{name}"
            yield estimate_entry(new_entry, entry_id, metric, "times", mean, clock="modelled")


def _replies(folder: Path, tasks: list[str]) -> Replies:
    known = by_task(read_corpus(folder / REPLIES))
    return {task: known[task] for task in tasks if task in known}
