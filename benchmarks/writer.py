"""`python -m benchmarks writer`: figures and samples of a policy that writes whole kernels.

It reads the assessments of a finished training run. The default kernel of each held-out graph is
evaluated on the same draws, if the run has not done so before.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.figures import RESULTS, BenchmarkEntry, FigureInterval, Subject, load_benchmarks
from benchmarks.renewal import MACHINE, NewEntry, entry_maker, rounded, store
from benchmarks.seeds import DIFFERENCE, beside_other_seeds, seed_part
from kernel_gym.analysis.estimators import Estimate, paired, ratio
from kernel_gym.commands.common import one_line_errors
from kernel_gym.executors import make_executor
from kernel_gym.records import Outcome, Stage
from kernel_gym.rewards import get_reward
from kernel_gym.tasks import get_task
from kernel_gym.tasks.generated.kernels import compact_text
from kernel_gym.training.assess import REPLIES
from kernel_gym.training.corpus import CorpusRow, read_corpus
from kernel_gym.training.graph_corpus import GraphSplit, graph_of, split_of
from kernel_gym.training.graph_kernels import default_plan, kernel_source
from kernel_gym.training.scoring import Scored, Scorer
from kernel_gym.training.train import CONFIG, FINAL, START, secret_of

CPU, GPU = "writer_cpu", "writer_gpu"
PAGE = Path("docs/training-samples.md")
_SHOWN_RIGHT = frozenset({Stage.ADVERSARIAL, Stage.UNSEEN, Stage.TIME, Stage.DONE})
"""Stages that follow the check of the train workloads."""
_RIGHT = frozenset({Outcome.PASSED, Outcome.INVALID_TIMING})
_FASTER = 1.02
"""Least ratio of speedups that counts as faster; below it lies the reward's own tolerance."""
_PHASES = {START: "after SFT", FINAL: "after GRPO"}
_OF_EACH_SEED = re.compile(r".*-(right|bound|speed-new|accuracy|reward)")
"""Figures that are stored for other seeds than 0, too."""


def writer(
    run: Annotated[Path, typer.Argument(help="The folder of a finished run.")],
    name: Annotated[str, typer.Option(help="The configuration: writer_cpu or writer_gpu.")] = CPU,
    machine: Annotated[str, typer.Option(help="Where it ran, a key of machines.json.")] = MACHINE,
    samples: Annotated[int, typer.Option(min=1, help="Replies on the page of samples.")] = 10,
    workers: Annotated[int, typer.Option(min=1, help="Parallel evaluations.")] = 2,
) -> None:
    """Compute the figures of a run that writes kernels.

    Figures of other seeds are kept. It writes the page of samples too, from a run of
    writer_gpu.toml with seed 0.

    Example: python -m benchmarks writer runs/writer_cpu
    """
    with one_line_errors():
        config = json.loads((run / CONFIG).read_text(encoding="utf-8"))
        held_out = frozenset(config["tasks"]["held_out"])
        replies = {
            phase: [row for row in read_corpus(run / phase / REPLIES) if row.task in held_out]
            for phase in _PHASES
            if (run / phase / REPLIES).exists()
        }
        defaults = default_scores(run, config, sorted(held_out), workers)
        subject, seed = f"training-{name.replace('_', '-')}", config["seed"]
        new_entry = entry_maker(subject, machine)
        results = figures(replies, defaults, new_entry, name, seed)
        stored = load_benchmarks(RESULTS).subjects.get(subject)
        others = stored.entries if stored else ()
        store(subject, beside_other_seeds(results, others, prefix_of(name), new_entry))
    if name == GPU and not seed:
        last = list(replies)[-1]
        PAGE.write_text(samples_page(replies[last], _PHASES[last], samples), encoding="utf-8")
    for entry in results.entries:
        typer.echo(f"{entry.metric}: {entry.value} {entry.unit} {entry.interval or ''}")


def prefix_of(name: str) -> str:
    """Returns what the identifiers of a configuration's figures begin with."""
    return name.replace("_", "-")


def default_scores(
    run: Path, config: dict[str, Any], tasks: Sequence[str], workers: int
) -> dict[str, Scored]:
    """Returns the evaluation of each task's default kernel, on the draws of the assessments."""
    gym = config["gym"]
    with make_executor(
        "local",
        device=gym["device"],
        seed=gym["seed"],
        secret=secret_of(run),
        workers=workers,
    ) as executor:
        scorer = Scorer(executor, get_reward(gym["reward"]), run)
        sources = [kernel_source(graph_of(t), default_plan(graph_of(t))) for t in tasks]
        scored = scorer(list(zip(tasks, sources, strict=True)), draw="assess")
    return {s.task: s for s in scored}


def figures(
    replies: dict[str, list[CorpusRow]],
    defaults: dict[str, Scored],
    new_entry: NewEntry,
    name: str = CPU,
    seed: int = 0,
) -> Subject:
    """Returns the figures of the checkpoints.

    Args:
        replies: Replies to held-out tasks by checkpoint, for each task equally many.
        defaults: The evaluation of the default kernel of each held-out task.
        new_entry: Makes an entry of this subject.
        name: The configuration of the run.
        seed: The seed of the run.
    """
    train = f"kernel-gym train kernel_gym/training/configs/{name}.toml"
    seeded = f" --seed {seed} --out runs/{name}" if seed else ""
    named = "" if name == CPU else f" --name {name}"
    command = f"{train}{seeded}; python -m benchmarks writer runs/{name}{named}"

    def entry_of(id: str, metric: str, **fields: Any) -> BenchmarkEntry:
        named = f"{prefix_of(name)}-{seed_part(seed)}{id}"
        metric = f"{metric}, seed {seed}" if seed else metric
        return new_entry(id=named, metric=metric, command=command, **fields)

    entries: list[BenchmarkEntry] = []
    for phase, rows in replies.items():
        entries += _of_checkpoint(phase, rows, defaults, entry_of)
    if set(replies) == set(_PHASES):
        before, after = (by_task(replies[phase]) for phase in _PHASES)
        for what, value in (("accuracy", right), ("reward", reward)):
            means = [[mean_of(value, of[task]) for task in before] for of in (before, after)]
            gain = paired(means[0], means[1])
            metric = f"Rise of the mean {what} on held-out graphs by GRPO"
            entries.append(
                estimate_entry(entry_of, f"grpo-{what}", metric, "", gain, paired_tasks=True)
            )
    if seed:
        entries = [entry for entry in entries if _OF_EACH_SEED.fullmatch(entry.id)]
    title = f"A policy that writes whole kernels, from nothing ({name}.toml)"
    return Subject(title=title, entries=tuple(entries))


def _of_checkpoint(
    phase: str, rows: list[CorpusRow], defaults: dict[str, Scored], new_entry: NewEntry
) -> Iterator[BenchmarkEntry]:
    when = _PHASES[phase]
    kinds = {"": tuple(GraphSplit), "new-graphs": (GraphSplit.HELD_OUT_GRAPH,)}
    kinds["new-pairs"] = (GraphSplit.HELD_OUT_PAIR,)
    for kind, splits in kinds.items():
        tasks = by_task([row for row in rows if split_of(graph_of(row.task)) in splits])
        metric = f"Correct on all shapes, {when}, {len(tasks)} held-out graphs"
        metric += f" ({kind.replace('-', ' ')})" if kind else ""
        name = f"{phase}-right-{kind}" if kind else f"{phase}-right"
        yield estimate_entry(new_entry, name, metric, "of replies", share_of(tasks, right))
    tasks = by_task(rows)
    metric = f"Correct on the shapes of the prompt, {when}"
    yield estimate_entry(
        new_entry, f"{phase}-shown", metric, "of replies", share_of(tasks, right_on_shown)
    )
    metric = f"Correct on the shapes of the prompt, but wrong on others, {when}"
    yield estimate_entry(new_entry, f"{phase}-bound", metric, "of replies", share_of(tasks, bound))
    for shapes, name in (("speedup", "shown"), ("unseen_speedup", "new")):
        logs = {t: list(log_ratios(own, defaults[t], shapes)) for t, own in tasks.items()}
        counts = [len(own) for own in logs.values()]
        mean = ratio([sum(own) for own in logs.values()], counts, np.exp)
        metric = (
            f"Default kernel's time divided by the time of correct replies, {name} shapes, {when}"
        )
        if mean.value is not None:
            entry_id = f"{phase}-speed-{name}"
            yield estimate_entry(new_entry, entry_id, metric, "times", mean, clock="modelled")
    least = math.log(_FASTER)
    logs = {t: list(log_ratios(own, defaults[t], "speedup")) for t, own in tasks.items()}
    faster = [sum(log > least for log in own) for own in logs.values()]
    share = ratio(faster, [len(own) for own in logs.values()])
    metric = f"Right replies that are faster than the default kernel, {when}"
    if share.value is not None:
        unit = "of right replies"
        yield estimate_entry(new_entry, f"{phase}-faster", metric, unit, share, clock="modelled")


def estimate_entry(
    new_entry: NewEntry,
    name: str,
    metric: str,
    unit: str,
    estimate: Estimate,
    clock: str = "none",
    paired_tasks: bool = False,
) -> BenchmarkEntry:
    """Returns an entry with the interval of an estimate, if it has one."""
    interval = None
    if estimate.low is not None and estimate.high is not None and estimate.low < estimate.high:
        kind = "95 % bootstrap interval over graphs" + (", paired" if paired_tasks else "")
        ends = rounded(estimate.low, 3), rounded(estimate.high, 3)
        interval = FigureInterval(low=ends[0], high=ends[1], kind=kind)
    assert estimate.value is not None
    return new_entry(
        id=name,
        metric=metric,
        value=rounded(estimate.value, 3),
        unit=unit or DIFFERENCE,
        interval=interval,
        clock=clock,
    )


def by_task(rows: Sequence[CorpusRow]) -> dict[str, list[CorpusRow]]:
    """Returns the replies to each task, without those that the machine failed."""
    tasks: dict[str, list[CorpusRow]] = {}
    for row in rows:
        if row.outcome is not Outcome.INFRA:
            tasks.setdefault(row.task, []).append(row)
    return tasks


def share_of(tasks: dict[str, list[CorpusRow]], value: Callable[[CorpusRow], float]) -> Estimate:
    """Returns the mean of a value over replies, with an interval over tasks."""
    return ratio([sum(map(value, own)) for own in tasks.values()], [*map(len, tasks.values())])


def mean_of(value: Callable[[CorpusRow], float], rows: Sequence[CorpusRow]) -> float:
    """Returns the mean of a value over replies."""
    return sum(map(value, rows)) / len(rows)


def right(row: CorpusRow) -> float:
    """Returns 1 for a reply that is right on all shapes."""
    return float(row.outcome is Outcome.PASSED)


def right_on_shown(row: CorpusRow) -> float:
    """Returns 1 for a reply that is right on the shapes of the prompt."""
    return float(row.stage in _SHOWN_RIGHT)


def bound(row: CorpusRow) -> float:
    """Returns 1 for a reply that is right on the shapes of the prompt and wrong on others."""
    return right_on_shown(row) * float(row.outcome not in _RIGHT)


def reward(row: CorpusRow) -> float:
    """Returns the reward of a reply; 0 where there is none."""
    return row.reward or 0.0


def log_ratios(rows: list[CorpusRow], default: Scored, shapes: str) -> Iterator[float]:
    """Yields logarithms of the speedups of right replies over the default kernel's."""
    of_default = getattr(default.evaluation, shapes, None)
    for row in rows:
        own = getattr(row, shapes)
        if own and of_default:
            yield math.log(own / of_default)


def samples_page(rows: list[CorpusRow], when: str, count: int, seed: int = 0) -> str:
    """Returns a page of replies, drawn by a seed and not chosen."""
    drawn = random.Random(seed).sample(rows, min(count, len(rows)))
    parts = [
        "# Samples of a policy that writes kernels",
        f"This page shows {len(drawn)} of {len(rows)} replies of a policy to held-out graphs, "
        f"{when} of `{GPU}.toml`. `python -m benchmarks writer RUN` chose these replies at random, "
        f"with the seed {seed}. [Training](training-writer.md#what-writer_gputoml-learns) "
        "describes how the policy was trained.",
    ]
    for row in drawn:
        graph = graph_of(row.task)
        verdict = f"outcome `{row.outcome}`"
        if row.speedup and row.unseen_speedup:
            verdict += f"; modelled speedup {row.speedup:.2f} on the shapes of the prompt, "
            verdict += f"{row.unseen_speedup:.2f} on new shapes"
        parts += [
            f"## `{get_task(row.task).problem.name}`",
            f"Kind: {split_of(graph)}; {graph.dtype}; {verdict}.",
            f"```\n{compact_text(graph)}\n```",
            f"```text\n{row.reply.strip()}\n```",
        ]
    return "\n\n".join(parts) + "\n"
