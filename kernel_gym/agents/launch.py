"""The program that confines an agent and becomes it.

It reads one JSON object from the descriptor that its argument names, and forks: the child loses
files, rights and the network, and then runs the command. Everything that the agent started ends
with it: the first process of the process namespace waits for the command alone.

Exit status: that of the command; 125 if the agent cannot be confined.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_gym.sandbox import confine
from kernel_gym.sandbox import kernel_calls as kernel

SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc", "/opt", "/proc")
DEVICE_FILES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
NEEDED_BARRIERS = ("mount namespace", "read-only file system")
"""Barriers without which an agent does not start."""
NOT_CONFINED = 125
"""Exit status of an agent that was not started."""
LIMITS = confine.WorkerLimits(
    memory=8 << 30,
    file_size=1 << 30,
    home_size=1 << 30,
    open_files=4096,
    processes=1024,
    cpu_seconds=7 * 86400,
)


@dataclass(frozen=True)
class Launch:
    """A command to run, and the files and variables that it may see.

    Attributes:
        command: A command for `/bin/sh -c`.
        folder: The workspace, which it may write.
        environment: Its variables besides the private ones.
        readable: Further folders that it may read, such as that of its program.
        network: Whether it reaches the network.
        confined: Whether it is confined at all.
        user: The user id that it gets if this process is root.
        home: An empty folder, over which its private one is mounted.
    """

    command: str
    folder: str
    environment: dict[str, str]
    readable: tuple[str, ...]
    network: bool
    confined: bool
    user: int
    home: str

    @classmethod
    def of(cls, data: dict[str, Any]) -> Launch:
        """Reads what the player wrote."""
        return cls(**{**data, "readable": tuple(data["readable"])})


def main(arguments: list[str]) -> int:
    """Runs the agent and returns its exit status."""
    with os.fdopen(int(arguments[0]), encoding="utf-8") as file:
        launch = Launch.of(json.load(file))
    kernel.set_parent_death_signal(signal.SIGKILL)
    kernel.become_subreaper()
    if not launch.confined:
        return _wait(_forked(lambda: _run(launch, {})))
    confinement = confine.Confinement()
    confine.isolate_namespaces(confinement, launch.network)
    return _wait(_forked(lambda: _first_process(launch, confinement)))


def _first_process(launch: Launch, confinement: confine.Confinement) -> None:
    """Confines itself, runs the command and ends with it, and so does all that it started."""
    confine.die_with_parent()
    confine.forbid_inspection()
    home = Path(launch.home)
    environment = confine.private_environment(home) | {"PATH": _path(launch.readable)}
    needed = tuple(filter(os.path.exists, (*_shown(launch), *DEVICE_FILES)))
    rooms = confine.Rooms(home, needed, (launch.folder,), alone=True, network=launch.network)
    confine.confine(confinement, rooms, LIMITS, launch.user)
    missing = [name for name in NEEDED_BARRIERS if name not in confinement.active]
    if missing:
        reasons = [f"{name} ({confinement.missing.get(name, 'not tried')})" for name in missing]
        print(f"the agent cannot be confined here: {', '.join(reasons)}", file=sys.stderr)
        sys.stderr.flush()
        os._exit(NOT_CONFINED)
    os._exit(_wait(_forked(lambda: _run(launch, environment))) & 0xFF)


def _shown(launch: Launch) -> Iterable[str]:
    """Folders that the agent may read. The interpreter's is one, for the scripts of a workspace."""
    yield from SYSTEM
    yield sys.base_prefix
    yield from launch.readable
    if launch.network:
        yield os.path.dirname(os.path.realpath("/etc/resolv.conf"))


def _path(readable: Iterable[str]) -> str:
    own = [part for folder in readable for part in (f"{folder}/bin", folder)]
    return ":".join((*own, "/usr/local/bin", "/usr/bin", "/bin", f"{sys.base_prefix}/bin"))


def _run(launch: Launch, environment: dict[str, str]) -> None:
    """Becomes the command."""
    os.setsid()
    os.chdir(launch.folder)
    variables = (environment or dict(os.environ)) | launch.environment
    os.execve("/bin/sh", ["/bin/sh", "-c", launch.command], variables)


def _forked(body: Callable[[], object]) -> int:
    """Forks; the child runs the body and never returns."""
    sys.stderr.flush()
    child = os.fork()
    if child:
        return child
    status = NOT_CONFINED
    try:
        body()
    except OSError as error:
        print(f"the agent cannot be started: {error}", file=sys.stderr)
    finally:
        sys.stderr.flush()
        os._exit(status)


def _wait(child: int) -> int:
    """Waits for a child, and ends all others: orphans become children of this process."""
    while True:
        done, status = os.wait()
        if done == child:
            break
    code = os.waitstatus_to_exitcode(status)
    _end_orphans()
    return code if code >= 0 else 128 - code


def _end_orphans() -> None:
    for _ in range(1000):
        text = Path(f"/proc/self/task/{os.getpid()}/children")
        try:
            orphans = [int(pid) for pid in text.read_text().split()]
        except OSError:
            return  # without /proc: the process namespace ends them
        if not orphans:
            return
        for pid in orphans:
            os.kill(pid, signal.SIGKILL)
        for _ in orphans:
            os.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
