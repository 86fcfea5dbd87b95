"""`python -m benchmarks evaluation-cost`: processor seconds of two checkouts, in turn.

Each checkout has a process of its own that evaluates the same sources with the same seeds. All of
its processes count. Both must give equal records.
"""

from __future__ import annotations

import datetime
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

from benchmarks.renewal import MACHINE
from kernel_gym.commands.common import JsonOption, note, one_line_errors, print_json
from kernel_gym.errors import InputError
from kernel_gym.records import Outcome

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
    """The wrong example of a task; without one that compiles, a start kernel with wrong values."""
    folder = Path(__file__).parents[1] / "kernel_gym/policies/examples" / name
    for example in folder.glob("1_wrong.*"):
        source = example.read_text(encoding="utf-8")
        if "not compile" not in source.partition("\n")[0]:
            return source
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
    suite: Annotated[str | None, typer.Option(help="All tasks of a suite.")] = None,
    mixed: Annotated[bool, typer.Option("--mixed", help="Add sources that fail.")] = False,
    out: Annotated[Path | None, typer.Option(help="A file of results for the figures.")] = None,
    json: JsonOption = False,
) -> None:
    """Compare two checkouts: seconds of all processes, and whether the records are equal.

    Example: python -m benchmarks evaluation-cost ../before . -t triton2triton/softmax
    """
    names = [*(task or ()), *tasks_of(suite), *control_group(core, seed)]
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
    if out is not None:
        options = _options(task or (), suite, core, seed, mixed)
        command = f"python -m benchmarks evaluation-cost BEFORE AFTER {options} --count {count}"
        _write(stored(rows, command, _commit(after)), out)


def tasks_of(suite: str | None) -> list[str]:
    """Returns the names of the tasks of a suite; none without one."""
    from kernel_gym.tasks.suite import load_suite

    return [] if suite is None else [task.id for task in load_suite(suite).tasks]


def _row(submission: Submission, pair: Sequence[tuple[float, dict[str, Any]]]) -> dict[str, Any]:
    """Returns the seconds of a submission in both checkouts.

    Raises:
        InputError: A checkout could not judge it, as when its libraries are not built.
    """
    (old, first), (new, second) = pair
    for side, record in (("before", first), ("after", second)):
        if record["outcome"] == Outcome.INFRA:
            raise InputError(f"{submission.task}, {side}: {record['message']}")
    return {
        "language": "HIP" if "2hip/" in submission.task else "Triton",
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
        for language, some in _by_language(rows, kind).items():
            summary[f"after over before, {language}, {kind}"] = _ratio(some)
    if all(any(row["kind"] == kind for row in rows) for kind in MIX):
        for side in ("before", "after"):
            means = {k: statistics.mean(r[side] for r in rows if r["kind"] == k) for k in MIX}
            seconds = sum(share * means[kind] for kind, share in MIX.items())
            summary[f"evaluations a processor minute, {side}"] = round(60 / seconds, 1)
    return summary


def _by_language(rows: Sequence[dict[str, Any]], kind: str) -> dict[str, list[dict[str, Any]]]:
    """The rows of a kind that took measurable time, by language."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if row["kind"] == kind and row["before"]:
            groups.setdefault(row["language"], []).append(row)
    return groups


def _note(rows: Sequence[dict[str, Any]]) -> str:
    tasks = "1 task" if len(rows) == 1 else f"{len(rows)} tasks"
    equal = "all" if all(row["equal"] for row in rows) else "not all"
    return f"{tasks}; {equal} records are equal."


def _ratio(rows: Sequence[dict[str, Any]]) -> float:
    return round(statistics.geometric_mean(row["after"] / row["before"] for row in rows), 3)


def _options(tasks: Sequence[str], suite: str | None, core: int, seed: int, mixed: bool) -> str:
    words = [f"-t {name}" for name in tasks]
    words += [f"--suite {suite}"] * bool(suite) + [f"--core {core} --seed {seed}"] * bool(core)
    return " ".join([*words, *["--mixed"] * mixed])


def _commit(folder: Path) -> str:
    command = ["git", "-C", str(folder), "rev-parse", "--short=8", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _write(figures: dict[str, Any], file: Path) -> None:
    file.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


def stored(rows: Sequence[dict[str, Any]], command: str, commit: str) -> dict[str, Any]:
    """Returns the figures as a file of `benchmarks/results`, see `benchmarks.figures`.

    Args:
        rows: The rows of a comparison.
        command: What measured them.
        commit: The code of the second checkout.
    """
    common = {
        "subject": "evaluation-cost",
        "unit": "x",
        "clock": "measured",
        "machine": MACHINE,
        "command": command,
        "commit": commit,
        "date": datetime.date.today().isoformat(),
        "counts": {},
    }
    entries = []
    for kind in MIX:
        for language, some in _by_language(rows, kind).items():
            ratios = [round(row["after"] / row["before"], 3) for row in some]
            entries.append(
                {
                    "id": f"evaluation-cost-{language}-{kind}".lower().replace(" ", "-"),
                    "metric": "Processor seconds of AFTER divided by those of BEFORE, "
                    f"{language}, {kind}",
                    "value": _ratio(some),
                    "interval": {"low": min(ratios), "high": max(ratios), "kind": "range of tasks"},
                    "note": _note(some),
                    **common,
                }
            )
    return {"title": "Cost of evaluations beside an earlier checkout", "entries": entries}
