"""`python -m benchmarks writer-inductor`: a corpus of TorchInductor's kernels, in figures.

It reads the graphs that `kernel-gym corpus --inductor` tried, and evaluates the default template of
each graph that has a pair, on the same train workloads.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from benchmarks.figures import BenchmarkEntry, Subject
from benchmarks.renewal import MACHINE, NewEntry, entry_maker, store
from benchmarks.writer import estimate_entry
from kernel_gym.analysis.estimators import Estimate, ratio
from kernel_gym.commands.common import one_line_errors
from kernel_gym.executors import make_executor
from kernel_gym.records import Outcome
from kernel_gym.storage.json_lines import read_lines
from kernel_gym.training.graph_corpus import graph_of
from kernel_gym.training.graph_kernels import default_plan, kernel_source
from kernel_gym.training.inductor_corpus import JOURNAL, GraphTrial
from kernel_gym.training.tiny import make_tokenizer

SUBJECT = "training-inductor"
COMMAND = (
    "kernel-gym corpus runs/inductor --pairs 0 --inductor {trials}; "
    "python -m benchmarks writer-inductor runs/inductor"
)
VOCABULARY = 2048
"""That of writer_cpu.toml."""


def writer_inductor(
    corpus: Annotated[Path, typer.Argument(help="The folder of the corpus.")],
    machine: Annotated[str, typer.Option(help="Where it ran, a key of machines.json.")] = MACHINE,
    device: Annotated[str, typer.Option(help="The device that judged it.")] = "sim:gfx942",
    workers: Annotated[int, typer.Option(min=1, help="Parallel evaluations.")] = 2,
) -> None:
    """Compare TorchInductor's kernels of a corpus with the default template; store the figures.

    Example: python -m benchmarks writer-inductor runs/inductor
    """
    with one_line_errors():
        trials = read_lines(corpus / JOURNAL, GraphTrial)
        tasks = [each.row.task for each in trials if not each.refused]
        with make_executor("local", device=device, seed=0, workers=workers) as executor:
            graphs = map(graph_of, tasks)
            sources = [kernel_source(graph, default_plan(graph)) for graph in graphs]
            waiting = [executor.submit(*each) for each in zip(tasks, sources, strict=True)]
            judged = [future.result() for future in waiting]
        defaults = {
            each.task: each.speedup
            for each in judged
            if each.outcome is Outcome.PASSED and each.speedup
        }
        results = figures(trials, defaults, entry_maker(SUBJECT, machine))
        store(SUBJECT, results)
    for entry in results.entries:
        typer.echo(f"{entry.metric}: {entry.value} {entry.unit} {entry.interval or ''}")


def figures(
    trials: Sequence[GraphTrial], defaults: Mapping[str, float], new_entry: NewEntry
) -> Subject:
    """Returns the figures of a corpus.

    Args:
        trials: The graphs that were tried.
        defaults: The speedup of the default template on each task that it passes.
        new_entry: Makes an entry of this subject.
    """
    rows = [each.row for each in trials if not each.refused]
    gains = [
        row.speedup / defaults[row.task] for row in rows if row.speedup and row.task in defaults
    ]
    logs, ones = [math.log(gain) for gain in gains], [1.0] * len(gains)
    texts = [text for row in rows for text in (row.prompt, row.source)]
    tokenizer = make_tokenizer(texts, VOCABULARY, "clauses")
    lengths = [float(len(tokenizer(row.source)["input_ids"])) for row in rows]
    right = [float(not each.refused) for each in trials]

    def entry(name: str, metric: str, unit: str, value: Estimate, clock: str) -> BenchmarkEntry:
        def named(id: str, **fields: object) -> BenchmarkEntry:
            command = COMMAND.format(trials=len(trials))
            return new_entry(id=f"inductor-{id}", command=command, **fields)

        return estimate_entry(named, name, metric, unit, value, clock)

    entries = (
        entry(
            "right",
            f"Training graphs with a right kernel by TorchInductor, {len(trials)} graphs",
            "of graphs",
            ratio(right, [1.0] * len(right)),
            "none",
        ),
        entry(
            "gain",
            "Default template's time divided by the time of TorchInductor's kernel, shown shapes, "
            f"{len(gains)} graphs",
            "times",
            ratio(logs, ones, np.exp),
            "modelled",
        ),
        entry(
            "faster",
            "Graphs on which TorchInductor's kernel is the faster one, shown shapes",
            "of graphs",
            ratio([float(gain > 1) for gain in gains], ones),
            "modelled",
        ),
        entry(
            "tokens",
            f"Tokens of a pair's kernel, own vocabulary of {VOCABULARY}",
            "tokens",
            ratio(lengths, [1.0] * len(lengths)),
            "none",
        ),
    )
    title = "A corpus of TorchInductor's kernels (kernel-gym corpus --inductor)"
    return Subject(title=title, entries=entries)
