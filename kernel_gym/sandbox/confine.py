"""What a worker is denied: detected, applied step by step, and reported when it is missing.

Applied in the freshly forked child before any candidate code is in the process. Every barrier is
put up where the kernel allows it; several of them stop the same thing, since none is everywhere.
"""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from kernel_gym.sandbox import kernel_calls as kernel
from kernel_gym.sandbox import landlock, seccomp, view

FIRST_USER = 0x4000_0000
"""User ids of workers start here, far from those of people, when the judge is root."""

NAMESPACES = {
    "process namespace": kernel.CLONE_NEWPID,
    "network namespace": kernel.CLONE_NEWNET,
    "IPC namespace": kernel.CLONE_NEWIPC,
    "mount namespace": kernel.CLONE_NEWNS,
}


WITHOUT = {
    "user namespace": "the namespaces below need root",
    "process namespace": "those that workers leave behind are searched for and ended",
    "network namespace": "workers reach the network unless Landlock denies TCP",
    "IPC namespace": "workers share System V memory with others",
    "mount namespace": "the file system is guarded by Landlock or the user id alone",
    "read-only file system": "Landlock or the user id alone guard files; disk is not bounded",
    "private /proc": "workers list other processes, but cannot look into them",
    "user id of its own": "workers are the judge's own user",
    "no capabilities": "workers keep the judge's rights",
    "Landlock": "the view of files and the user id alone guard them",
    "system call filter": "workers may ask the kernel for namespaces, io_uring, keys and the like; "
    "memory that they share or that their children take is found by the watch alone",
}
"""What a barrier that is missing leaves open, for `kernel-gym doctor`."""


@dataclass(frozen=True)
class Limits:
    """Resource limits of one worker. Sizes are bytes, for each process but for `home_size`."""

    memory: int = 4 << 30
    file_size: int = 256 << 20
    home_size: int = 1 << 30
    open_files: int = 256
    processes: int = 256
    cpu_seconds: int = 300
    one_process: bool = False
    """Refuse other processes and shared memory, so that `memory` bounds all that it holds."""


@dataclass
class Confinement:
    """Which barriers are up (`active`) and which this kernel refused (`missing`, with why)."""

    active: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)

    def attempt(self, name: str, step: Callable[[], object]) -> bool:
        """Takes one step and notes whether the kernel allowed it."""
        try:
            step()
        except OSError as error:
            self.missing[name] = error.strerror or str(error)
            return False
        self.active.append(name)
        return True


ONE_THREAD = {"OMP_NUM_THREADS": "1"}
"""For processes of which there are several. A numerical library starts a thread for each processor
of the machine otherwise, and these go round before they sleep: a kernel that another process times
meanwhile is late by milliseconds."""


def private_environment(home: Path) -> dict[str, str]:
    """The whole environment of a worker: nothing of the judge's is in it."""
    return {
        "HOME": str(home),
        "TMPDIR": str(home / "tmp"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "TRITON_HOME": str(home),
        "TRITON_CACHE_DIR": str(home / "triton"),
        "TRITON_DEFAULT_FP_FUSION": "1",
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        **ONE_THREAD,
    }


def limit_resources(limits: Limits) -> None:
    """Sets the hard limits; a worker that meets one fails alone."""
    for what, value in (
        (resource.RLIMIT_DATA, limits.memory),
        (resource.RLIMIT_FSIZE, limits.file_size),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_NPROC, limits.processes),
        (resource.RLIMIT_CPU, limits.cpu_seconds),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(what)
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(what, (value, value))


def limit_memory(size: int) -> None:
    """Bounds the private memory of a process of ours that works for a worker."""
    resource.setrlimit(resource.RLIMIT_DATA, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def isolate_namespaces(found: Confinement) -> None:
    """Leaves the judge's process, network, IPC and mount namespaces, where the kernel allows it.

    The process namespace takes effect for the next fork: its first process is the namespace's
    init, and everything in it dies with that process.
    """
    if os.geteuid() != 0:
        uid, gid = os.geteuid(), os.getegid()
        if found.attempt("user namespace", lambda: kernel.unshare(kernel.CLONE_NEWUSER)):
            _map_identity(uid, gid)
    for name, flag in NAMESPACES.items():
        found.attempt(name, partial(kernel.unshare, flag))


@dataclass(frozen=True)
class Rooms:
    """Where a worker may be: its own folder, what it needs to read, what else it may write."""

    home: Path
    needed: tuple[str, ...]
    writable: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    """Device files of a GPU."""
    hidden: tuple[str, ...] = ()
    """Files that look empty."""
    alone: bool = False
    """Nothing else is to be seen of the file system."""


def confine(found: Confinement, rooms: Rooms, limits: Limits, user: int | None) -> None:
    """Takes files, rights and resources from this process, for good.

    Args:
        found: what the namespaces gave; the further barriers are added.
        rooms: what stays of the file system.
        limits: of resources.
        user: the id that the process takes when it is root's; None keeps the judge's.
    """
    drops = user is not None and os.geteuid() == 0
    owner = user if drops and user is not None else os.geteuid()
    if "mount namespace" in found.active:
        built = found.attempt(
            "read-only file system", lambda: _build_view(rooms, limits.home_size, owner)
        )
        if built and not rooms.alone and "process namespace" in found.active:
            found.attempt("private /proc", view.hide_processes)
    (rooms.home / "tmp").mkdir(parents=True, exist_ok=True)
    os.chdir(rooms.home / "tmp")
    limit_resources(limits)
    found.active.append("resource limits")
    if drops:
        found.attempt("user id of its own", lambda: _become(owner, rooms))
    if not (os.geteuid() == 0 and user is None):
        found.attempt("no capabilities", kernel.drop_capabilities)
    die_with_parent()
    readable = rooms.needed if rooms.alone else (*view.SYSTEM, *rooms.needed)
    writable = (*view.DEVICES, *rooms.devices, str(rooms.home), *rooms.writable)
    sealed = tuple(path for path in view.SEALED if os.path.exists(path))
    if rooms.devices:
        writable = (*writable, "/proc/self")  # NVIDIA's driver names its threads there
    found.attempt("Landlock", lambda: landlock.restrict(readable, writable, sealed))
    found.attempt("system call filter", lambda: seccomp.restrict(limits.one_process))


def _build_view(rooms: Rooms, home_size: int, owner: int) -> None:
    if rooms.alone:
        view.build_alone(rooms.home, home_size, owner, rooms.needed)
    else:
        writable = list(rooms.writable)
        view.build(rooms.home, home_size, owner, rooms.needed, writable, rooms.hidden)


def die_with_parent() -> None:
    """Asks the kernel to kill this process when its parent ends; forbids gaining privileges."""
    kernel.set_parent_death_signal(signal.SIGKILL)
    kernel.forbid_new_privileges()


def forbid_inspection() -> None:
    """Makes the memory of this process unreadable for others of the same user."""
    kernel.set_dumpable(False)


def _become(user: int, rooms: Rooms) -> None:
    """Takes another user id, unless that user could not read the interpreter.

    Raises:
        PermissionError: a folder of the interpreter is closed to others.
    """
    os.setgroups(sorted({os.stat(path).st_gid for path in rooms.devices} - {0}))
    os.setresgid(user, user, user)
    os.setresuid(user, 0, 0)  # access() asks for the real id
    folders = filter(os.path.isdir, rooms.needed)
    closed = [path for path in folders if not os.access(path, os.R_OK | os.X_OK)]
    if closed:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)
        raise PermissionError(1, f"{closed[0]} is not readable for other users")
    for path in (rooms.home, rooms.home / "tmp"):
        os.chown(path, user, user)
    os.setresuid(user, user, user)


def _map_identity(uid: int, gid: int) -> None:
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
