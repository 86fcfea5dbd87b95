"""The barriers around a worker: applied step by step, and reported when they are missing.

A forked child applies them before any candidate code is in the process. Each barrier is applied
where the kernel allows it. Several of them stop the same thing, since no barrier exists everywhere.
"""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from kernel_gym import triton_versions
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
    "process namespace": "processes that workers leave behind are searched for and ended",
    "network namespace": "workers reach the network unless Landlock denies TCP",
    "IPC namespace": "workers share System V memory with others",
    "mount namespace": "the file system is guarded by Landlock or the user id alone",
    "read-only file system": "Landlock or the user id alone guard files; disk is not bounded",
    "private /proc": "workers list other processes, but cannot look into them",
    "user id of its own": "workers are the judge's own user",
    "no capabilities": "workers keep the judge's rights",
    "Landlock": "the view of files and the user id alone guard them",
    "system call filter": "workers may ask the kernel for namespaces, io_uring, keys and the like; "
    "only the memory watch finds memory that they share or that their children take",
}
"""The effect of a missing barrier, for `kernel-gym doctor`."""


@dataclass(frozen=True)
class WorkerLimits:
    """Resource limits of one worker. Sizes are bytes; all but `home_size` hold for each process."""

    memory: int = 4 << 30
    file_size: int = 256 << 20
    home_size: int = 1 << 30
    open_files: int = 256
    processes: int = 256
    cpu_seconds: int = 300
    one_process: bool = False
    """Refuse other processes and shared memory, so that `memory` bounds the whole worker."""


@dataclass
class Confinement:
    """The barriers that are active, and those that this kernel refused, each with the reason."""

    active: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)

    def attempt(self, name: str, step: Callable[[], object]) -> bool:
        """Applies one barrier and notes whether the kernel allowed it."""
        try:
            step()
        except OSError as error:
            self.missing[name] = error.strerror or str(error)
            return False
        self.active.append(name)
        return True


ONE_THREAD = {"OMP_NUM_THREADS": "1"}
"""Environment of processes of which several run at a time. Otherwise a numerical library starts a
thread for each CPU of the machine. These threads poll before they sleep, which delays a kernel that
another process times by milliseconds."""


def private_environment(home: Path) -> dict[str, str]:
    """Returns the whole environment of a worker. It holds no variable of the judge."""
    return {
        "HOME": str(home),
        "TMPDIR": str(home / "tmp"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "TRITON_HOME": str(home),
        "TRITON_CACHE_DIR": str(home / "triton"),
        **triton_versions.ENVIRONMENT,
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "USER": "worker",  # its user has no name, and libraries ask for one
        **ONE_THREAD,
    }


def limit_resources(limits: WorkerLimits) -> None:
    """Sets the hard limits. A worker that reaches one fails, and nothing else does."""
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
    """Bounds the private memory of a trusted process that serves a worker."""
    resource.setrlimit(resource.RLIMIT_DATA, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def isolate_namespaces(confinement: Confinement, network: bool = False) -> None:
    """Leaves the judge's process, network, IPC and mount namespaces, where the kernel allows it.

    With `network` the process keeps the network of the machine.

    The process namespace takes effect at the next fork. Its first process is the init of the
    namespace, and the kernel kills all others in it when that process ends.
    """
    if os.geteuid() != 0:
        uid, gid = os.geteuid(), os.getegid()
        if confinement.attempt("user namespace", lambda: kernel.unshare(kernel.CLONE_NEWUSER)):
            _map_identity(uid, gid)
    for name, flag in NAMESPACES.items():
        if network and flag == kernel.CLONE_NEWNET:
            continue
        confinement.attempt(name, partial(kernel.unshare, flag))


@dataclass(frozen=True)
class Rooms:
    """The parts of the file system that a worker may use."""

    home: Path
    needed: tuple[str, ...]
    writable: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    """Device files of a GPU."""
    hidden: tuple[str, ...] = ()
    """Files that appear empty."""
    alone: bool = False
    """Whether the rest of the file system is invisible."""
    network: bool = False
    """Whether TCP is allowed."""


def confine(confinement: Confinement, rooms: Rooms, limits: WorkerLimits, user: int | None) -> None:
    """Takes files, rights and resources from this process, permanently.

    Args:
        confinement: The barriers so far; the others are added to it.
        rooms: The parts of the file system that stay.
        limits: The resource limits.
        user: The user id that the process takes if it runs as root; None keeps the judge's.
    """
    drops = user is not None and os.geteuid() == 0
    owner = user if drops and user is not None else os.geteuid()
    if "mount namespace" in confinement.active:
        built = confinement.attempt(
            "read-only file system", lambda: _build_view(rooms, limits.home_size, owner)
        )
        if built and not rooms.alone and "process namespace" in confinement.active:
            confinement.attempt("private /proc", view.hide_processes)
    (rooms.home / "tmp").mkdir(parents=True, exist_ok=True)
    os.chdir(rooms.home / "tmp")
    limit_resources(limits)
    confinement.active.append("resource limits")
    if drops:
        confinement.attempt("user id of its own", lambda: _become(owner, rooms))
    if not (os.geteuid() == 0 and user is None):
        confinement.attempt("no capabilities", kernel.drop_capabilities)
    die_with_parent()
    readable = rooms.needed if rooms.alone else (*view.SYSTEM, *rooms.needed)
    writable = (*view.DEVICES, *rooms.devices, str(rooms.home), *rooms.writable)
    sealed = tuple(path for path in view.SEALED if os.path.exists(path))
    if rooms.devices:
        writable = (*writable, "/proc/self")  # NVIDIA's driver names its threads there
    confinement.attempt(
        "Landlock", lambda: landlock.restrict(readable, writable, sealed, rooms.network)
    )
    confinement.attempt("system call filter", lambda: seccomp.restrict(limits.one_process))


def _build_view(rooms: Rooms, home_size: int, owner: int) -> None:
    if rooms.alone:
        view.build_alone(rooms.home, home_size, owner, rooms.needed, rooms.writable)
    else:
        writable = list(rooms.writable)
        view.build(rooms.home, home_size, owner, rooms.needed, writable, rooms.hidden)


def die_with_parent() -> None:
    """Asks the kernel to kill this process when its parent ends; forbids gaining privileges."""
    kernel.set_parent_death_signal(signal.SIGKILL)
    kernel.forbid_new_privileges()


def forbid_inspection() -> None:
    """Makes the memory of this process unreadable for other processes of the same user."""
    kernel.set_dumpable(False)


def _become(user: int, rooms: Rooms) -> None:
    """Takes another user id, unless that user could not read the interpreter.

    Raises:
        PermissionError: Other users cannot read a folder of the interpreter.
    """
    os.setgroups(sorted({os.stat(path).st_gid for path in rooms.devices} - {0}))
    os.setresgid(user, user, user)
    os.setresuid(user, 0, 0)  # access() checks the real user id
    folders = filter(os.path.isdir, rooms.needed)
    closed = [path for path in folders if not os.access(path, os.R_OK | os.X_OK)]
    if closed:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)
        for path in (rooms.home, rooms.home / "tmp"):
            os.chown(path, 0, 0)  # without capabilities the worker can enter its own folders only
        raise PermissionError(1, f"{closed[0]} is not readable for other users")
    for path in (rooms.home, rooms.home / "tmp"):
        os.chown(path, user, user)
    os.setresuid(user, user, user)


def _map_identity(uid: int, gid: int) -> None:
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
