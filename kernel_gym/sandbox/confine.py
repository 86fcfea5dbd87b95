"""What a worker is denied: detected, applied step by step, and reported when it is missing.

Called in the freshly forked child before any candidate code is in the process. What this does not
cover yet: the file system is readable, and memory is limited by process, not in sum.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from dataclasses import dataclass, field
from pathlib import Path

_CLONE_NEWUSER = 0x10000000
_CLONE_NEWPID = 0x20000000
_CLONE_NEWNET = 0x40000000
_CLONE_NEWIPC = 0x08000000
_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Limits:
    """Resource limits of one worker. Sizes are bytes."""

    memory: int = 6 << 30
    file_size: int = 256 << 20
    open_files: int = 256
    processes: int = 512
    cpu_seconds: int = 300


@dataclass
class Confinement:
    """Which barriers are up (`active`) and which this kernel refused (`missing`, with why)."""

    active: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)


def private_environment(home: Path) -> dict[str, str]:
    """The whole environment of a worker: nothing of the judge's is in it."""
    temp = home / "tmp"
    temp.mkdir(parents=True, exist_ok=True)
    return {
        "HOME": str(home),
        "TMPDIR": str(temp),
        "XDG_CACHE_HOME": str(home / "cache"),
        "TRITON_HOME": str(home),
        "TRITON_CACHE_DIR": str(home / "triton"),
        "TRITON_DEFAULT_FP_FUSION": "1",
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
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


def isolate_namespaces() -> Confinement:
    """Leaves the judge's process, network and IPC namespaces, where the kernel allows it.

    The process namespace takes effect for the next fork: its first process is the namespace's
    init, and everything in it dies with that process.
    """
    found = Confinement()
    if os.geteuid() != 0:
        uid, gid = os.geteuid(), os.getegid()
        if _unshare(_CLONE_NEWUSER, "user namespace", found):
            _map_identity(uid, gid)
    _unshare(_CLONE_NEWPID, "process namespace", found)
    _unshare(_CLONE_NEWNET, "network namespace", found)
    _unshare(_CLONE_NEWIPC, "IPC namespace", found)
    return found


def die_with_parent() -> None:
    """Asks the kernel to kill this process when its parent ends; forbids gaining privileges."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def forbid_inspection() -> None:
    """Makes the memory of this process unreadable for others of the same user."""
    _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _unshare(flag: int, name: str, found: Confinement) -> bool:
    if _libc.unshare(flag) == 0:
        found.active.append(name)
        return True
    found.missing[name] = os.strerror(ctypes.get_errno())
    return False


def _map_identity(uid: int, gid: int) -> None:
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
