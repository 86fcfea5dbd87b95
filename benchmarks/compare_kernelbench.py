"""Verdicts of kernel-gym and of KernelBench's own evaluator on the same candidates.

Thirty problems in KernelBench's layout have a right, a wrong and a cheating candidate each: those
of `tests/imports/readers/twenty_modules.py`. A cheat computes with PyTorch beside a kernel that
does nothing useful. KernelBench's evaluator runs unchanged: under `kernel-gym sim` on a simulated
GPU, and directly on a real one, where it measures times as its scripts do.

    python -m benchmarks.compare_kernelbench KERNELBENCH --out verdicts.jsonl
    python -m benchmarks.compare_kernelbench KERNELBENCH --device cuda:0 --out verdicts.jsonl

Only `src/` of KernelBench is needed. Each evaluation becomes a line of the file as soon as it is
done. A run that was interrupted continues where it stopped. `--report` prints what the file has.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
THEIRS = Path(__file__).with_name("kernelbench_verdicts.py")
KINDS = ("right", "wrong", "cheating")
ONE_PROCESS, APART, OURS = "kernelbench", "kernelbench, a process each", "kernel-gym"
CHEAT = """
class ModelNew({base}):
    def forward(self, {names}):
        y = torch.empty_like({first})
        nothing[(1,)](y)
        return super().forward({names})


import triton
import triton.language as tl


@triton.jit
def nothing(y_ptr):
    tl.store(y_ptr, 0.0)
"""
Candidates = dict[str, tuple[str, str]]
Lines = list[dict[str, Any]]


def candidates() -> Candidates:
    """Returns module and source by `problem/kind`."""
    sys.path.insert(0, str(ROOT))
    from tests.imports.readers.twenty_modules import THIRTY

    rows = {}
    for name, row in THIRTY.items():
        body = row.module.partition("\n\n\nrows = ")[0]
        names = body.partition("def forward(self, ")[2].partition(")")[0]
        first = names.partition(",")[0]
        cheat = f"{body}\n\n{CHEAT.format(base='Model', names=names, first=first)}"
        for kind, source in zip(KINDS, (row.triton, row.wrong_triton, cheat), strict=True):
            rows[f"{name}/{kind}"] = row.module, source
    return rows


class Record:
    """The lines of the file, one for each evaluation of each run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()

    def lines(self) -> Lines:
        """Returns the lines so far; half a line at the end is left out."""
        if not self.path.is_file():
            return []
        return [
            json.loads(line) for line in self.path.read_text().splitlines() if line.endswith("}")
        ]

    def missing(self, run: str, rows: Candidates) -> Candidates:
        """Returns the candidates that a run has not evaluated yet."""
        done = {line["candidate"] for line in self.lines() if line["run"] == run}
        return {name: row for name, row in rows.items() if name not in done}

    def add(self, **line: Any) -> None:
        """Writes one line."""
        with self._lock, self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")


def run_theirs(
    run: str, rows: Candidates, record: Record, checkout: Path, device: str, folder: Path
) -> None:
    """Runs KernelBench's evaluator on candidates, in a process that is started again if it ends.

    Args:
        run: The name of the run in the record.
        rows: The candidates.
        record: Takes a line for each.
        checkout: The folder with KernelBench's `src`.
        device: The device, simulated or real.
        folder: For files.
    """
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "TRITON_CACHE_DIR": str(folder / f"triton-{len(run)}"),  # no run finds what another left
    }
    while left := record.missing(run, rows):
        chosen = dict(list(left.items())[:1]) if run == APART else left
        (folder / "rows.json").write_text(json.dumps(chosen))
        files = [checkout / "src", folder / "rows.json", record.path]
        command = [sys.executable, str(THEIRS), *map(str, files), run, str(time.time())]
        if device.startswith("sim:"):
            sim = [sys.executable, "-m", "kernel_gym", "sim", "--device", device, "--"]
            command = [*sim, *command]
        else:
            command += ["apart" if run == APART else "warm"]
        code = subprocess.run(command, cwd=ROOT, env=environment).returncode
        if len(record.missing(run, rows)) == len(left):
            name = next(iter(left))
            record.add(run=run, candidate=name, verdict=f"ended its process ({code})")


def import_problems(rows: Candidates, device: str, folder: Path) -> None:
    """Makes tasks of the problems. On a GPU they are traced only, since verdicts need no more."""
    import torch

    from kernel_gym.imports.bench.import_bench import ImportBench
    from kernel_gym.imports.bench.importing import import_suite
    from kernel_gym.imports.manifest import DeviceVerdict, ImportStatus
    from kernel_gym.imports.readers.kernelbench import TRITON
    from kernel_gym.tasks.names import IMPORTS
    from kernel_gym.tasks.task import Task

    class TracingBench(ImportBench):
        """A bench without admission."""

        def admit(self, task: Task) -> DeviceVerdict:
            return DeviceVerdict(status=ImportStatus.ADMITTED, reason="traced only")

    os.environ[IMPORTS] = str(folder / "imports")
    level = folder / "checkout" / "KernelBench" / "level1"
    level.mkdir(parents=True, exist_ok=True)
    for name, (module, _) in rows.items():
        (level / f"{name.partition('/')[0]}.py").write_text(module)
    kind = ImportBench if device.startswith("sim:") else TracingBench
    number = 1 if device.startswith("sim:") else os.cpu_count() or 1
    if number > 1:
        torch.set_num_threads(1)
    benches = [kind(device) for _ in range(number)]
    for step in import_suite(TRITON, folder / "checkout", benches):
        verdict = step.entry.verdicts.get(device)
        if verdict is None or verdict.status is not ImportStatus.ADMITTED:
            reason = step.entry.reason or (verdict.reason if verdict else "")
            print(f"{step.entry.name} is not admitted: {reason}", file=sys.stderr)
    for bench in benches:
        bench.__exit__()


def run_ours(run: str, rows: Candidates, record: Record, device: str, workers: int) -> None:
    """Evaluates candidates with some evaluators, whose start does not count.

    Args:
        run: The name of the run in the record.
        rows: The candidates.
        record: Takes a line for each.
        device: The device.
        workers: How many evaluators share the device.
    """
    from kernel_gym.executors import make_executor

    left = record.missing(run, rows)
    if not left:
        return
    first = next(iter(rows))
    with make_executor("local", device=device, workers=workers) as executor:

        def evaluate(name: str, seed: int) -> Any:
            task = f"kernelbench/level1/{name.partition('/')[0]}"
            return executor.submit(task, rows[name][1], seed).result()

        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(lambda seed: evaluate(first, seed), range(1, workers + 1)))
            session, begin = time.time(), time.monotonic()

            def judge(name: str) -> None:
                evaluation = evaluate(name, 0)
                record.add(
                    run=run,
                    candidate=name,
                    verdict=str(evaluation.outcome),
                    message=evaluation.message,
                    speedup=evaluation.speedup,
                    session=session,
                    elapsed=time.monotonic() - begin,
                )

            list(pool.map(judge, left))


def rates(lines: Lines) -> Iterator[tuple[str, int, float]]:
    """Yields each run with its number of timed evaluations and the evaluations a minute."""
    for run in dict.fromkeys(line["run"] for line in lines):
        sessions: dict[float, list[float]] = {}
        for line in lines:
            if line["run"] == run and "elapsed" in line:
                sessions.setdefault(line["session"], []).append(line["elapsed"])
        seconds = sum(max(elapsed) for elapsed in sessions.values())
        number = sum(map(len, sessions.values()))
        if seconds:
            yield run, number, 60 * number / seconds


def report(lines: Lines, with_rates: bool) -> str:
    """Returns how often each pair of verdicts occurs, which differ, and the rates on a GPU."""
    by_run: dict[str, dict[str, str]] = {}
    for line in lines:
        by_run.setdefault(line["run"], {})[line["candidate"]] = line["verdict"]
    theirs = by_run.get(ONE_PROCESS, {})
    ours: dict[str, str] = {}
    for run, verdicts in by_run.items():
        ours |= verdicts if run.startswith(OURS) and len(verdicts) > len(ours) else {}
    both = [name for name in theirs if name in ours]
    pairs = Counter((name.rpartition("/")[2], theirs[name], ours[name]) for name in both)
    text = ["| candidate | KernelBench | kernel-gym | problems |", "|---|---|---|--:|"]
    text += [f"| {k} | {t} | `{o}` | {n} |" for (k, t, o), n in sorted(pairs.items())]
    if with_rates:
        text += ["", "| run | evaluations | a minute |", "|---|--:|--:|"]
        text += [f"| {run} | {number} | {rate:.1f} |" for run, number, rate in rates(lines)]
    accepted = [n for n in both if not n.endswith("/right") and theirs[n] == "correct"]
    refused = [n for n in both if n.endswith("/right") and ours[n] != "passed"]
    text += ["", f"not right, accepted by KernelBench: {', '.join(accepted) or 'none'}"]
    text += [f"right, refused by kernel-gym: {', '.join(refused) or 'none'}"]
    return "\n".join(text)


def main() -> None:
    """Runs what the file does not have yet, and prints the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path, help="a checkout of KernelBench, or its src/ alone")
    parser.add_argument("--out", type=Path, required=True, help="a file of JSON lines")
    parser.add_argument("--device", default="sim:gfx942")
    parser.add_argument("--workers", type=int, default=0, help="evaluators; 0: as many as usual")
    parser.add_argument("--single", type=int, default=30, help="candidates with one evaluator")
    parser.add_argument("--apart", type=int, default=9, help="candidates with a process each")
    parser.add_argument("--only", default="", help="problems whose names start so")
    parser.add_argument("--report", action="store_true", help="only print what the file has")
    given = parser.parse_args()
    record = Record(given.out.resolve())
    if not given.report:
        compare(given, record)
    print(report(record.lines(), not given.device.startswith("sim:")))


def compare(given: argparse.Namespace, record: Record) -> None:
    """Does the runs: all candidates with both, then fewer with one evaluator or apart."""
    from kernel_gym.executors.make import default_workers

    rows = {n: row for n, row in candidates().items() if n.startswith(given.only)}
    folder = record.path.with_suffix(".files")
    folder.mkdir(parents=True, exist_ok=True)
    checkout, device = given.checkout.resolve(), given.device
    workers = given.workers or default_workers(device)
    import_problems(rows, device, folder)
    run_theirs(ONE_PROCESS, rows, record, checkout, device, folder)
    several = "s" * (workers > 1)
    run_ours(f"{OURS}, {workers} evaluator{several}", rows, record, device, workers)
    if not device.startswith("sim:"):
        some = list(rows.items())
        if workers > 1:
            run_ours(f"{OURS}, 1 evaluator", dict(some[: given.single]), record, device, 1)
        run_theirs(APART, dict(some[: given.apart]), record, checkout, device, folder)


if __name__ == "__main__":
    main()
