"""Holds the timing model against measured records: `python -m benchmarks simulator --validate`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.simulator.launches import SimulatedLaunches, TritonLaunch
from benchmarks.simulator.records import Measured
from benchmarks.simulator.skill import Compared, FamilySkill, pair_order, skill
from kernel_gym.sim.constants import LAUNCH_S


class Validation:
    """Compared records, and what could not be compared."""

    def __init__(self, rows: Sequence[Compared], failed: dict[str, str]) -> None:
        """Keep the rows; `failed` gives the reason by the record's name."""
        self.rows, self.failed = list(rows), failed

    def families(self) -> dict[str, FamilySkill]:
        """Figures by family, of all together under ``all``, and of all whose time is the GPU's."""
        names = sorted({row.family for row in self.rows})
        figures = {n: skill([r for r in self.rows if r.family == n]) for n in names}
        if len(names) > 1:
            figures["all"] = skill(self.rows)
        of_the_gpu = [row for row in self.rows if not row.is_of_the_host]
        if len(of_the_gpu) < len(self.rows):
            figures["all without times of the host"] = skill(of_the_gpu)
        return figures

    def problems(self) -> dict[str, dict[str, Any]]:
        """Order of the pairs of variants, by the first word of the group."""
        by_problem: dict[str, list[Compared]] = {}
        for row in self.rows:
            by_problem.setdefault(row.group.partition("|")[0], []).append(row)
        orders = {name: pair_order(rows) for name, rows in sorted(by_problem.items())}
        return {name: order for name, order in orders.items() if order["pairs"]}

    def to_json(self) -> dict[str, Any]:
        """JSON-able data: figures, rows and failures."""
        return {
            "families": {name: each.to_json() for name, each in self.families().items()},
            "pairs_of_variants": self.problems(),
            "failed": self.failed,
            "rows": [{**vars(row), "ratio": row.ratio} for row in self.rows],
        }


def validate_records(
    records: Sequence[Measured],
    folder: Path,
    progress: Callable[[str], None] = lambda name: None,
    simulated: SimulatedLaunches | None = None,
) -> Validation:
    """Models the launches of all records.

    Args:
        records: From :func:`~benchmarks.simulator.records.read_records`.
        folder: Files of the kernels.
        progress: Called with the name of each record before it runs.
        simulated: Where they run.

    Returns:
        The comparison. A record whose kernel does not compile or run is in ``failed``.
    """
    simulated = simulated or SimulatedLaunches()
    known: dict[str, float] = {}
    rows, failed = [], {}
    for record in records:
        progress(record.identity)
        try:
            seconds = min(
                _seconds(simulated, folder / record.kernel, x, known) for x in record.launches
            )
        except Exception as error:  # whatever a compiler raises belongs to this record alone
            failed[record.identity] = f"{type(error).__name__}: {error}"[:200]
            continue
        modelled = max(record.floor, (seconds - LAUNCH_S) * 1e6 + record.overhead)
        names = (record.identity, record.family, record.group)
        times = (record.microseconds, modelled, record.floor, record.overhead)
        rows.append(Compared(*names, *times, record.varies))
    return Validation(rows, failed)


def _seconds(
    simulated: SimulatedLaunches, path: Path, launch: TritonLaunch, known: dict[str, float]
) -> float:
    """The modelled time of a launch. Equal launches run once."""
    key = json.dumps([str(path), launch.to_json()], sort_keys=True)
    if key not in known:
        known[key] = simulated.run(path, launch).seconds or 0.0
    return known[key]


def plot(validation: Validation, path: Path) -> None:
    """Writes a scatter plot of modelled against measured times, by family."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for name in sorted({row.family for row in validation.rows}):
        rows = [row for row in validation.rows if row.family == name]
        axes.scatter([r.measured for r in rows], [r.modelled for r in rows], s=12, label=name)
    ends = [row.measured for row in validation.rows] + [row.modelled for row in validation.rows]
    if ends:
        line = (min(ends), max(ends))
        axes.plot(line, line, color="black", linewidth=0.8)
    axes.set(xscale="log", yscale="log", xlabel="measured, us", ylabel="modelled, us")
    axes.legend(fontsize=7)
    figure.savefig(path)
