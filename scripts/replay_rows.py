"""Replays exported rows on the simulator, by hand, and counts the verdicts that differ.

    python scripts/replay_rows.py --rows 1000 --workers 2 --out runs/replay

A row is a variant of a start kernel: another launch, or one sign changed. Each is judged with a
seed of its own and exported as messages, for verl or for Apex. The rows are read from their files
and judged again in other processes. The script prints JSON after every four tasks. If it is
stopped, the same command continues.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice, product
from pathlib import Path
from typing import Any

from kernel_gym.analysis.replay import secret_of
from kernel_gym.episodes.episode import Episode
from kernel_gym.exchange.back import judged, submissions
from kernel_gym.exchange.files import read_rows, write_rows
from kernel_gym.exchange.replies import reply_rows
from kernel_gym.executors import make_executor
from kernel_gym.policies import Scripted, evaluate_policy
from kernel_gym.storage.run_store import RunStore
from kernel_gym.tasks import Task, get_task, task_ids

DEVICE = "sim:gfx942"
FORMATS = ("messages", "verl", "apex")
LAUNCH = re.compile(r"BLOCK=\d+")
SIGN = re.compile(r" [+*] ")
BLOCKS, WARPS = (64, 128, 256, 512), (1, 2, 4)
LEVEL = 3
"""Tasks of higher levels take longer and come last."""
VARIANTS = 32
"""Most variants of a task."""
TASKS = 4
"""Tasks of a run. Its rows are replayed when it is over."""


def variants(task: Task) -> Iterator[str]:
    """The kernels of a task: each launch, then each sign changed."""
    source = task.start_source
    for block, warps in product(BLOCKS, WARPS):
        yield LAUNCH.sub(f"BLOCK={block}, num_warps={warps}", source)
    for found in SIGN.finditer(source):
        changed = " - " if found[0] == " + " else " + "
        yield source[: found.start()] + changed + source[found.end() :]


class Variants(Scripted):
    """Submits the variants of start kernels, one in each turn."""

    def submit(self, episode: Episode) -> str | None:
        """The next variant."""
        return next(islice(variants(episode.task), len(episode.turns), None), None)


def chosen() -> list[str]:
    """The tasks whose launch can be varied, without attention, which takes too long."""
    tasks = [get_task(name) for name in task_ids() if name.startswith("triton2triton/")]
    varied = [
        task
        for task in tasks
        if LAUNCH.search(task.start_source)
        and "num_warps" not in task.start_source
        and task.problem.category != "Attention"
    ]
    return [task.id for task in sorted(varied, key=lambda task: task.problem.level > LEVEL)]


def record(folder: Path, names: Sequence[str], workers: int) -> RunStore:
    """Plays the variants of some tasks, or continues to."""
    folder.mkdir(parents=True, exist_ok=True)
    suite = folder / "suite.toml"
    suite.write_text(f'name = "replay"\nsummary = "Replay"\ntasks = {json.dumps(names)}\n')
    evaluate_policy(
        Variants(), str(suite), device=DEVICE, turns=VARIANTS, workers=workers,
        out=folder / "run", resume=True,
    )  # fmt: skip
    return RunStore(folder / "run")


def export(store: RunStore, folder: Path) -> list[Path]:
    """Writes each row in one of the formats, by turns."""
    paths = []
    for number, form in enumerate(FORMATS):
        paths.append(folder / f"{form}.{'parquet' if form == 'verl' else 'jsonl'}")
        write_rows(paths[-1], reply_rows(store, form)[number :: len(FORMATS)])
    return paths


def replayed(store: RunStore, paths: Sequence[Path], workers: int) -> dict[str, Any]:
    """Judges the rows of files again."""
    rows = [one for path in paths for one in submissions(read_rows(path))]
    secret = secret_of(store)
    with make_executor("local", device=DEVICE, workers=workers, secret=secret) as executor:
        results = list(judged(rows, executor))
    return {
        "rows": len(rows),
        "sources": len({one.source for one in rows}),
        "outcomes": Counter(str(evaluation.outcome) for _, evaluation, _ in results),
        "differ": [f"{one.task}, turn {one.evidence['turn']}: {what}"
                   for one, _, what in results if what],
    }  # fmt: skip


def main() -> None:
    """Records, exports and replays."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    total: Counter[str] = Counter()
    outcomes: Counter[str] = Counter()
    differ: list[str] = []
    for number, names in enumerate(batched(chosen(), TASKS)):
        if total["rows"] >= given.rows:
            break
        folder = given.out / str(number)
        figures = folder / "figures.json"
        if not figures.exists():
            store = record(folder, names, given.workers)
            again = replayed(store, export(store, folder), given.workers)
            figures.write_text(json.dumps(again))
        known = json.loads(figures.read_text())
        total.update(runs=1, tasks=len(names), rows=known["rows"], sources=known["sources"])
        outcomes.update(known["outcomes"])
        differ += known["differ"]
        print(json.dumps({**total, "outcomes": outcomes, "differ": differ}), flush=True)


def batched(names: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """Parts of a list."""
    return (names[at : at + size] for at in range(0, len(names), size))


if __name__ == "__main__":
    main()
