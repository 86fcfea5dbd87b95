"""Runs scripts of judges, each in a confined child of a process that has loaded PyTorch once.

    python -m kernel_gym.judges.host

Each line of the standard input is a job, each line of the standard output says how it ended. A
child sees the system, the interpreter, the judge's checkout and its own folder, which alone it may
write. It has no network, and limits of time, memory and files.
"""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import select
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from kernel_gym.sandbox import confine, view
from kernel_gym.sandbox import kernel_calls as kernel

OUTPUT = "judge-output.txt"
"""The file of the folder that takes what the script prints."""
CPU_SECONDS = "KERNEL_GYM_JUDGE_CPU_SECONDS"
"""The variable with the CPU seconds of each process of a judge."""
LIMITS = confine.WorkerLimits(
    memory=16 << 30,
    open_files=1024,
    processes=256,
    cpu_seconds=int(os.environ.get(CPU_SECONDS, "240")),
    home_size=1 << 30,
)
MAX_WALL_SECONDS = 1500.0
NEEDED = ("mount namespace", "read-only file system")
"""Barriers without which no judge is started."""
NOT_CONFINED = 125
DEVICES = (*view.DEVICES, "/dev/random", "/dev/urandom")


@dataclass(frozen=True)
class HostJob:
    """A script to run.

    Attributes:
        words: The script and its arguments.
        folder: The folder in which it runs.
        readable: Further folders that it may read.
    """

    words: tuple[str, ...]
    folder: str
    readable: tuple[str, ...]


@dataclass(frozen=True)
class JobEnd:
    """How a job ended: status (minus the signal's number), CPU seconds, whether it was late."""

    status: int
    cpu_seconds: float
    late: bool = False


def run_job(job: HostJob) -> JobEnd:
    """Runs one job and returns how it ended."""
    with tempfile.TemporaryDirectory(prefix="judge-home-") as home:
        child = _forked(lambda: _outer(job, home))
        late = not _ends_within(child, MAX_WALL_SECONDS)
        if late:
            os.kill(child, signal.SIGKILL)
        _, status, usage = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return JobEnd(code if code < 128 else 128 - code, usage.ru_utime + usage.ru_stime, late)


def _ends_within(child: int, seconds: float) -> bool:
    """Waits until a child ends; returns whether it does in time."""
    process = os.pidfd_open(child)
    try:
        return bool(select.select([process], [], [], seconds)[0])
    finally:
        os.close(process)


def _outer(job: HostJob, home: str) -> int:
    """Leaves the namespaces; the child is the first process of the new ones."""
    kernel.set_parent_death_signal(signal.SIGKILL)
    confinement = confine.Confinement()
    confine.isolate_namespaces(confinement)
    return _status(_forked(lambda: _first_process(job, Path(home), confinement)))


def _first_process(job: HostJob, home: Path, confinement: confine.Confinement) -> int:
    """Confines itself and runs the script in a child. All that it started ends with this."""
    needed = (*view.SYSTEM, *view.needed_folders(), *job.readable, *DEVICES)
    shown = tuple(path for path in dict.fromkeys(needed) if path != "/dev" and os.path.exists(path))
    environment = confine.private_environment(home)
    del environment["PATH"]
    os.environ.update(environment)
    tempfile.tempdir = None  # the folder of the host cannot be written here
    rooms = confine.Rooms(home, shown, (job.folder,), alone=True)
    confine.confine(confinement, rooms, LIMITS, confine.FIRST_USER)
    missing = [name for name in NEEDED if name not in confinement.active]
    if missing:
        print(f"the judge cannot be confined here: {', '.join(missing)}", file=sys.stderr)
        return NOT_CONFINED
    return _status(_forked(lambda: _run(job)))


def _run(job: HostJob) -> int:
    """Runs the script as Python's command line would."""
    os.chdir(job.folder)
    output = os.open(OUTPUT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for target, source in ((0, nothing), (1, output), (2, output)):
        os.dup2(source, target)
    os.closerange(3, LIMITS.open_files)
    os.setsid()
    sys.argv = list(job.words)
    sys.path[0] = os.path.dirname(os.path.abspath(job.words[0]))
    status: object = 0
    try:
        runpy.run_path(job.words[0], run_name="__main__")
    except SystemExit as end:
        status = end.code
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    return status if isinstance(status, int) else int(status is not None)


def _forked(body: Callable[[], int]) -> int:
    """Forks; the child ends with the status that the body returns."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        status = body()
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stderr.flush()
        os._exit(status & 0xFF)


def _status(child: int) -> int:
    """Waits for a child; returns its status, or 128 and the signal's number."""
    while True:
        done, status = os.wait()  # orphans become children of the first process
        if done == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def main() -> None:
    """Runs the jobs of the standard input."""
    import torch
    import triton

    del torch, triton  # loaded before the processes of the judges are forked
    for line in sys.stdin:
        data = json.loads(line)
        job = HostJob(tuple(data["words"]), data["folder"], tuple(data["readable"]))
        begin = time.monotonic()
        end = run_job(job)
        print(json.dumps({**asdict(end), "seconds": time.monotonic() - begin}), flush=True)


if __name__ == "__main__":
    main()
