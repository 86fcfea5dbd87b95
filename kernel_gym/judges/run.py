"""Runs a judge on candidates of the corpus."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

from kernel_gym import __version__
from kernel_gym.errors import InputError, KernelGymError
from kernel_gym.judges.adapter import JudgeAdapter, Reading, result_text
from kernel_gym.judges.corpus import Candidate
from kernel_gym.judges.host import NOT_CONFINED, OUTPUT
from kernel_gym.judges.verdicts import JudgeAnswer, JudgeVerdict, read_verdicts, short_message
from kernel_gym.programs.environment import environment
from kernel_gym.simulated_rocm.settings import SimSettings

ROOT = Path(__file__).resolve().parents[2]
OUTPUT_CHARACTERS = 20_000
Keep = Callable[[JudgeVerdict], None]


class JudgeHost:
    """A process with the simulated GPU that runs a judge's scripts, each in a confined child."""

    def __init__(self, device: str) -> None:
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        settings = SimSettings(device=device, threads=1)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "kernel_gym.judges.host"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(settings, os.environ | {"PYTHONPATH": path}),
            text=True,
        )

    def run(self, words: Sequence[str], folder: Path, readable: Sequence[Path]) -> dict[str, Any]:
        """Runs a script; returns `status`, `cpu_seconds` and `limit`.

        Raises:
            KernelGymError: The host has ended.
        """
        job = {"words": list(words), "folder": str(folder), "readable": list(map(str, readable))}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise KernelGymError(f"the host of judges ended with status {self._process.wait()}")
        answer: dict[str, object] = json.loads(line)
        return answer

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def run_judge(
    adapter: JudgeAdapter,
    checkout: Path,
    chosen: Iterable[Candidate],
    keep: Keep,
    workers: int = 1,
    device: str = "sim:gfx942",
) -> None:
    """Runs a judge of somebody else on candidates.

    Args:
        adapter: The judge's adapter.
        checkout: The judge's checkout. It is not written.
        chosen: The candidates.
        keep: Takes each row as soon as it is there, from several threads.
        workers: Processes that run at the same time.
        device: The simulated device.

    Raises:
        InputError: The checkout is no folder.
        KernelGymError: A host ended.
    """
    rows = list(chosen)
    if not checkout.is_dir():
        raise InputError(f"{checkout}: no such folder")
    checkout = checkout.resolve()
    commit = commit_of(checkout)

    def run_slice(first: int) -> None:
        with closing(JudgeHost(device)) as host:
            for candidate in rows[first::workers]:
                keep(judge_candidate(adapter, checkout, commit, candidate, host))

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(run_slice, range(workers)))


def judge_candidate(
    adapter: JudgeAdapter, checkout: Path, commit: str, candidate: Candidate, host: JudgeHost
) -> JudgeVerdict:
    """Returns the row of one candidate."""
    folder = Path(tempfile.mkdtemp(prefix="judge-"))
    seconds = 0.0
    try:
        try:
            words = adapter.prepare(candidate, checkout, folder)
        except InputError as error:
            reading = Reading(JudgeAnswer.OPEN, message=str(error))
        else:
            _open_to_all(folder)
            end = host.run(words, folder, [checkout])
            seconds = end["cpu_seconds"]
            reading = _read(adapter, folder, end)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    paid = reading.paid if reading.answer is JudgeAnswer.ACCEPTED else None
    return new_verdict(adapter.name, commit, candidate, reading, paid, seconds)


def new_verdict(
    judge: str,
    commit: str,
    candidate: Candidate,
    reading: Reading,
    paid: float | None,
    cpu_seconds: float,
) -> JudgeVerdict:
    """Returns a row; a speedup that is no number above zero is left out, with a word."""
    legal = paid is not None and 0 <= paid < float("inf")
    message = reading.message if paid is None or legal else f"pays {paid}; {reading.message}"
    return JudgeVerdict(
        judge=judge,
        commit=commit,
        runner=commit_of_runner(),
        candidate=candidate.name,
        digest=candidate.digest,
        truth=candidate.truth,
        answer=reading.answer,
        paid=round(paid, 4) if legal and paid is not None else None,
        cpu_seconds=round(cpu_seconds, 2),
        message=short_message(message),
    )


def _read(adapter: JudgeAdapter, folder: Path, end: dict[str, object]) -> Reading:
    """Returns the verdict, or why there is none."""
    output = result_text(folder, OUTPUT)[-OUTPUT_CHARACTERS:]
    if end["limit"]:
        return Reading(JudgeAnswer.OPEN, message=f"it was ended by the limit of {end['limit']}")
    if end["status"] == NOT_CONFINED:
        return Reading(JudgeAnswer.OPEN, message="it could not be confined")
    reading = adapter.read(folder, output)
    if reading.answer is JudgeAnswer.OPEN:
        message = reading.message or (output.strip() or "it printed nothing")
        return Reading(JudgeAnswer.OPEN, message=f"status {end['status']}: {message[-200:]}")
    return reading


def _open_to_all(folder: Path) -> None:
    """Lets another user, which the judge runs as, write in the folder."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)


def commit_of(checkout: Path) -> str:
    """Returns the commit of a checkout, or a digest of its Python files; `+` if it was changed."""
    git = ["git", "-C", str(checkout), "-c", f"safe.directory={checkout}"]
    top = subprocess.run([*git, "rev-parse", "--show-toplevel", "HEAD"], capture_output=True)
    lines = top.stdout.decode().split()
    if top.returncode == 0 and Path(lines[0]) == checkout:
        changed = subprocess.run([*git, "status", "--porcelain", "-uno"], capture_output=True)
        return lines[1] + ("+" if changed.stdout else "")
    digest = hashlib.sha256()
    for path in sorted(checkout.rglob("*.py")):
        digest.update(path.relative_to(checkout).as_posix().encode() + b"\0" + path.read_bytes())
    return f"files-{digest.hexdigest()[:16]}"


@cache
def commit_of_runner() -> str:
    """Returns the commit of this program, with `+` if it was changed, or its release."""
    return commit_of(ROOT) if (ROOT / ".git").exists() else f"release-{__version__}"


class RowFile:
    """A file of rows that grows; without a path the rows are only printed.

    Args:
        path: The file.
        resume: Continue the file; otherwise it must not exist.
        show: Prints a line.

    Attributes:
        rows: Its rows.

    Raises:
        InputError: The file exists and is not continued, or has lines that are no rows.
    """

    def __init__(self, path: Path | None, resume: bool, show: Callable[[str], object]) -> None:
        self._path, self._show, self._lock = path, show, threading.Lock()
        self.rows: list[JudgeVerdict] = []
        if path is not None and path.exists():
            if not resume:
                raise InputError(f"{path} exists; name a new file, or continue it with --resume")
            self.rows = read_verdicts([path])
            text = path.read_text(encoding="utf-8")
            path.write_text(text[: text.rfind("\n") + 1], encoding="utf-8")

    def missing(self, chosen: Iterable[Candidate], judge: str) -> list[Candidate]:
        """Returns the candidates on which the file has no row of a judge, in their present form."""
        done = {row.digest for row in self.rows if row.judge == judge}
        return [candidate for candidate in chosen if candidate.digest not in done]

    def keep(self, row: JudgeVerdict) -> None:
        """Writes a row and prints it."""
        with self._lock:
            self.rows.append(row)
            if self._path is not None:
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(row.model_dump_json(exclude_defaults=True) + "\n")
            self._show(f"{row.candidate}: {row.answer} {row.paid or ''} {row.message}")
