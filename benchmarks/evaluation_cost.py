"""`python -m benchmarks evaluation-cost`: processor seconds of two checkouts, in turn.

Each checkout has a process of its own that evaluates the same sources with the same seeds. All of
its processes count. Both must give equal records.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from kernel_gym.commands.common import JsonOption, note, one_line_errors, print_json

MIX = {"does not compile": 0.60, "wrong": 0.25, "right": 0.15}
"""The submissions of a young policy."""
_SERVE = """
import json, sys
from kernel_gym.evaluator import Evaluator
from kernel_gym.storage.secret import PUBLIC
from kernel_gym.tasks import get_task
with Evaluator(device="sim:gfx942", secret=PUBLIC) as evaluator:
    for line in sys.stdin:
        task, source, seed = json.loads(line)
        record = evaluator.evaluate(get_task(task), source, seed=seed)
        data = record.model_dump(mode="json", exclude={"wall_seconds"})
        print(json.dumps(data), file=sys.stderr, flush=True)
"""
_TICKS = os.sysconf("SC_CLK_TCK")
_BROKEN = {"triton": ("tl.load(", "tl.loaded("), "hip": ("blockIdx", "blockIndex")}
"""Names and what replaces them, so that a source does not compile."""
_WRONG = {"triton": (".to(tl.float32)", ".to(tl.float32) + 1.0"), "hip": ("threadIdx.x;", "0;")}


@dataclass(frozen=True)
class Submission:
    """A source for a task, and the part of the mix that it stands for."""

    task: str
    kind: str
    source: str


class Checkout:
    """The processes of one checkout.

    Args:
        folder: Its root, with libraries that are built.
    """

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _SERVE],
            env={**os.environ, "PYTHONPATH": str(folder)},
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def evaluate(self, submission: Submission, seed: int) -> tuple[float, dict[str, Any]]:
        """Returns the processor seconds of an evaluation, and its record.

        Raises:
            RuntimeError: The process has ended.
        """
        assert self._process.stdin
        assert self._process.stderr
        before = _seconds_of_tree(self._process.pid)
        request = [submission.task, submission.source, seed]
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        while line := self._process.stderr.readline():
            if line.startswith("{"):
                return _seconds_of_tree(self._process.pid) - before, json.loads(line)
        raise RuntimeError(f"the evaluator ended with status {self._process.wait()}")

    def close(self) -> None:
        """Ends the processes."""
        self._process.kill()
        self._process.wait()


def _seconds_of_tree(root: int) -> float:
    """User and system seconds of a process, of its descendants, and of those that have ended."""
    parents, seconds = {}, {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(name)] = int(fields[1])
        seconds[int(name)] = sum(map(int, fields[11:15])) / _TICKS
    members, size = {root}, 0
    while size < len(members):
        size = len(members)
        members |= {pid for pid, parent in parents.items() if parent in members}
    return sum(seconds.get(pid, 0.0) for pid in members)


def submissions(names: Sequence[str], mixed: bool) -> list[Submission]:
    """Returns the start kernel of each task, and with `mixed` what fails as well."""
    from kernel_gym.tasks import get_task

    chosen = []
    for name in names:
        task = get_task(name)
        chosen.append(Submission(name, "right", task.kernel_source))
        if mixed:
            broken = task.kernel_source.replace(*_BROKEN[task.language])
            chosen.append(Submission(name, "does not compile", broken))
            chosen.append(Submission(name, "wrong", _wrong(name, task)))
    return chosen


def _wrong(name: str, task: Any) -> str:
    """The wrong example of a task; without one a start kernel that leaves elements out."""
    folder = Path(__file__).parents[1] / "kernel_gym/policies/examples" / name
    examples = sorted(folder.glob("1_wrong.*"))
    if examples:
        return examples[0].read_text(encoding="utf-8")
    return task.kernel_source.replace(*_WRONG[task.language], 1)


def control_group(count: int, seed: int) -> list[str]:
    """Draws tasks of the suite `core`, which the simulator runs."""
    from kernel_gym.tasks.suite import load_suite

    names = sorted(task.id for task in load_suite("core").tasks)
    return random.Random(seed).sample(names, min(count, len(names)))


def evaluation_cost(
    before: Annotated[Path, typer.Argument(help="A checkout.", exists=True, file_okay=False)],
    after: Annotated[Path, typer.Argument(help="Another one.", exists=True, file_okay=False)],
    task: Annotated[list[str] | None, typer.Option("--task", "-t")] = None,
    core: Annotated[int, typer.Option(help="Tasks that are drawn from the suite core.")] = 0,
    seed: Annotated[int, typer.Option(help="Of that draw.")] = 3,
    count: Annotated[int, typer.Option(min=1, help="Evaluations; the last one counts.")] = 2,
    mixed: Annotated[bool, typer.Option("--mixed", help="Add sources that fail.")] = False,
    json: JsonOption = False,
) -> None:
    """Compare two checkouts: seconds of all processes, and whether the records are equal.

    Example: python -m benchmarks evaluation-cost ../before . -t triton2triton/softmax
    """
    names = [*(task or ()), *control_group(core, seed)]
    rows: list[dict[str, Any]] = []
    with one_line_errors():
        sides = [Checkout(before), Checkout(after)]
        for submission in submissions(names, mixed):
            for number in range(count):
                pair = [side.evaluate(submission, number) for side in sides]
            rows.append(_row(submission, pair))
            note(" ".join(f"{key}={value}" for key, value in rows[-1].items()))
        for side in sides:
            side.close()
    print_json({**_summary(rows), "rows": rows} if json else _summary(rows))


def _row(submission: Submission, pair: Sequence[tuple[float, dict[str, Any]]]) -> dict[str, Any]:
    (old, first), (new, second) = pair
    return {
        "task": submission.task,
        "kind": submission.kind,
        "outcome": second["outcome"],
        "before": round(old, 2),
        "after": round(new, 2),
        "equal": first == second,
    }


def _summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Geometric means of after over before, and evaluations a processor minute of the mix."""
    summary: dict[str, Any] = {"equal": all(row["equal"] for row in rows)}
    for kind in MIX:
        ratios = [r["after"] / r["before"] for r in rows if r["kind"] == kind and r["before"]]
        if ratios:
            summary[f"after over before, {kind}"] = round(statistics.geometric_mean(ratios), 3)
    if all(any(row["kind"] == kind for row in rows) for kind in MIX):
        for side in ("before", "after"):
            means = {k: statistics.mean(r[side] for r in rows if r["kind"] == k) for k in MIX}
            seconds = sum(share * means[kind] for kind, share in MIX.items())
            summary[f"evaluations a processor minute, {side}"] = round(60 / seconds, 1)
    return summary
