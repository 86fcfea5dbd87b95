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
from kernel_gym.torch_device import build

OUTPUT = "judge-output.txt"
"""The file of the folder that takes what the script prints."""
CPU_SECONDS = "KERNEL_GYM_JUDGE_CPU_SECONDS"
"""The variable with the CPU seconds of each process of a judge."""
LIMITS = confine.WorkerLimits(
    memory=16 << 30,
    file_size=1 << 40,  # the memory of a simulated GPU is such a file
    open_files=1024,
    processes=256,
    cpu_seconds=int(os.environ.get(CPU_SECONDS, "240")),
    home_size=1 << 30,
)
CHARGED_SHARE = 0.5
"""The kernel charges whole ticks against the limit of CPU seconds. On a busy machine it ends a
process before the precise time, which the row states, reaches the limit: at this share or more."""
MAX_WALL_SECONDS = 1500.0
MAX_FOLDER_BYTES = 1 << 30
SHARED_MEMORY = "/dev/shm"
NEEDED = ("mount namespace", "read-only file system")
"""Barriers without which no judge is started."""
NOT_CONFINED = 125
FIRST_SIGNAL = 128
"""A status from here on is that of a process which a signal ended, as shells state it."""
KILLED = FIRST_SIGNAL + signal.SIGKILL
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
    """How a job ended.

    Attributes:
        status: Its exit status, or minus the signal's number.
        cpu_seconds: CPU seconds of all of its processes.
        limit: The limit of this program that ended it, or empty.
    """

    status: int
    cpu_seconds: float
    limit: str = ""


def run_job(job: HostJob) -> JobEnd:
    """Runs one job and returns how it ended."""
    with tempfile.TemporaryDirectory(prefix="judge-home-") as home:
        child = _forked(lambda: _outer(job, home))
        limit = _wait_for(child, Path(job.folder))
        if limit:
            os.kill(child, signal.SIGKILL)
        _, status, usage = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    seconds = usage.ru_utime + usage.ru_stime
    if code == KILLED and not limit and seconds >= CHARGED_SHARE * LIMITS.cpu_seconds:
        limit = "CPU seconds"
    return JobEnd(code if code < FIRST_SIGNAL else FIRST_SIGNAL - code, seconds, limit)


def _wait_for(child: int, folder: Path) -> str:
    """Waits until a child ends or is over a limit; returns the limit, or nothing."""
    process, until = os.pidfd_open(child), time.monotonic() + MAX_WALL_SECONDS
    try:
        while not select.select([process], [], [], 1.0)[0]:
            if time.monotonic() > until:
                return "wall time"
            if _bytes_of(folder) > MAX_FOLDER_BYTES:
                return "bytes of files"
        return ""
    finally:
        os.close(process)


def _bytes_of(folder: Path) -> int:
    """Returns the bytes that a folder takes on the disk; what vanishes meanwhile counts nothing."""
    total = 0
    for place, _, files in os.walk(folder):
        for name in files:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(place, name)).st_blocks * 512
    return total


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
    library = build.find_library()
    content = b"" if library is None else library.read_bytes()
    os.environ.update(environment)
    tempfile.tempdir = None  # the folder of the host cannot be written here
    if "mount namespace" in confinement.active:
        _mount_shared_memory()
    rooms = confine.Rooms(home, shown, (job.folder, SHARED_MEMORY), alone=True)
    confine.confine(confinement, rooms, LIMITS, confine.FIRST_USER)
    missing = [name for name in NEEDED if name not in confinement.active]
    if missing:
        print(f"the judge cannot be confined here: {', '.join(missing)}", file=sys.stderr)
        return NOT_CONFINED
    if content and build.find_library() is None:  # it was in the cache of the user
        build.cache_folder().mkdir(parents=True)
        (build.cache_folder() / build.library_name()).write_bytes(content)
    return _status(_forked(lambda: _run(job)))


def _mount_shared_memory() -> None:
    """Mounts a new file system for the semaphores of Python's pools of processes."""
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    flags = kernel.MS_NOSUID | kernel.MS_NODEV
    kernel.mount("shm", SHARED_MEMORY, "tmpfs", flags, "size=256m,mode=1777")


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
        # Processes that the script spawns load it by this path.
        runpy.run_path(os.path.abspath(job.words[0]), run_name="__main__")
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
    """Waits for a child; returns its status, or `FIRST_SIGNAL` and the signal's number."""
    while True:
        done, status = os.wait()  # orphans become children of the first process
        if done == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else FIRST_SIGNAL - code


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
