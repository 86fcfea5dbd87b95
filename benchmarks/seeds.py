"""Figures of runs that differ in their seed: one run is stored beside those of other seeds.

An identifier is `PREFIX-NAME` for seed 0, `PREFIX-seed-N-NAME` for seed N, and
`PREFIX-all-seeds-NAME` for the mean of a difference over the seeds.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Iterator

from benchmarks.figures import BenchmarkEntry, FigureInterval, Subject
from benchmarks.renewal import NewEntry, rounded

ALL_SEEDS = "all-seeds"
DIFFERENCE = "difference"
"""The unit of figures that have a mean over seeds."""
_SEED = re.compile(r"-seed-(\d+)-")


def seed_part(seed: int) -> str:
    """Returns what the identifiers of a seed have after their prefix."""
    return f"seed-{seed}-" if seed else ""


def seed_of(entry: BenchmarkEntry) -> int:
    """Returns the seed of a figure's run."""
    seed = _SEED.search(entry.id)
    return int(seed[1]) if seed else 0


def metric_of(entry: BenchmarkEntry) -> str:
    """Returns what a figure measures, without its seed."""
    return entry.metric.partition(", seed ")[0]


def name_of(entry: BenchmarkEntry, prefix: str) -> str:
    """Returns the part of a figure's identifier that all seeds share."""
    name = entry.id.removeprefix(f"{prefix}-").removeprefix(seed_part(seed_of(entry)))
    return name.removeprefix(f"{ALL_SEEDS}-")


def beside_other_seeds(
    results: Subject, stored: Iterable[BenchmarkEntry], prefix: str, new_entry: NewEntry
) -> Subject:
    """Returns the figures of one seed with those of others, and mean differences over the seeds.

    Args:
        results: The figures of one seed.
        stored: The figures so far, of which those of this seed are replaced.
        prefix: What all identifiers begin with.
        new_entry: Makes an entry of this subject.
    """
    seeds = {seed_of(entry) for entry in results.entries}
    kept = [e for e in stored if seed_of(e) not in seeds and ALL_SEEDS not in e.id]
    entries = sorted((*kept, *results.entries), key=seed_of)
    means = _over_seeds(entries, prefix, new_entry)
    return results.model_copy(update={"entries": (*entries, *means)})


def _over_seeds(
    entries: Iterable[BenchmarkEntry], prefix: str, new_entry: NewEntry
) -> Iterator[BenchmarkEntry]:
    differences: dict[str, list[BenchmarkEntry]] = {}
    for entry in entries:
        if entry.unit == DIFFERENCE:
            differences.setdefault(name_of(entry, prefix), []).append(entry)
    for name, own in differences.items():
        values = sorted(float(entry.value or 0) for entry in own)
        if len(values) > 1:
            kind = f"range of {len(values)} seeds"
            ends = rounded(values[0], 3), rounded(values[-1], 3)
            yield new_entry(
                id=f"{prefix}-{ALL_SEEDS}-{name}",
                metric=f"{metric_of(own[0])}, mean over seeds",
                value=rounded(statistics.fmean(values), 3),
                unit=DIFFERENCE,
                interval=FigureInterval(low=ends[0], high=ends[1], kind=kind),
                clock="none",
                command=own[0].command,
            )
