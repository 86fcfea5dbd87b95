"""The file system as a worker sees it: read-only, with its home in memory.

The view is built in a mount namespace of the worker. Folders in which users keep files are replaced
by empty ones that hold only what the interpreter needs. The exploit suite and the example kernels
of this package appear empty, so that a candidate cannot copy them.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

from kernel_gym.sandbox import kernel_calls as kernel

HIDDEN = ("/tmp", "/var/tmp", "/dev/shm", "/home", "/root", "/run", "/mnt")
"""Folders that appear empty to a worker, except for what the interpreter needs from them."""
SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc", "/opt", "/proc", "/dev", "/sys")
"""Folders that a worker may read besides those of the interpreter."""
DEVICES = ("/dev/null", "/dev/zero", "/dev/full")
"""Device files that a worker may write."""
_PACKAGE = Path(__file__).resolve().parents[1]
SEALED = (
    *(str(_PACKAGE / "exploits/suite"), str(_PACKAGE / "policies/examples")),
    str(_PACKAGE.parent / ".git"),
)
"""Folders of this package and of its checkout that a worker cannot read: hostile candidates,
solved tasks, and the history of both."""
_PRIVATE = kernel.MS_NOSUID | kernel.MS_NODEV


def needed_folders() -> tuple[str, ...]:
    """Folders of the interpreter and of all loaded modules; only the outermost ones."""
    places = {sys.prefix, sys.base_prefix, sys.exec_prefix, *filter(os.path.isdir, sys.path)}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and os.path.isabs(file):
            places.add(os.path.dirname(file))
    places |= {os.path.realpath(place) for place in places}
    return _outermost(places)


def build(
    home: Path,
    size: int,
    owner: int,
    needed: tuple[str, ...],
    writable: list[str],
    hidden: tuple[str, ...] = (),
) -> None:
    """Builds the view in this process's mount namespace.

    Args:
        home: The worker's folder. A file system in memory is mounted there.
        size: Limit of the bytes below `home`.
        owner: User and group id of `home`.
        needed: Folders that stay readable wherever they are.
        writable: Folders that stay writable.
        hidden: Files that appear empty wherever they are.

    Raises:
        OSError: The kernel refuses a step.
    """
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    for folder in filter(os.path.isdir, SEALED):  # first, so that the binds below include them
        kernel.mount("sealed", folder, "tmpfs", _PRIVATE, "size=4k,mode=755")
    kept = {path: os.open(path, os.O_PATH) for path in (*needed, *writable)}
    try:
        for folder in HIDDEN:
            if os.path.isdir(folder) and not os.path.islink(folder):
                _hide(folder, kept)
    finally:
        for fd in kept.values():
            os.close(fd)
    for path in filter(os.path.isfile, hidden):
        kernel.mount("/dev/null", path, None, kernel.MS_BIND)
    home.mkdir(parents=True, exist_ok=True)
    options = f"size={size},nr_inodes=65536,mode=700,uid={owner},gid={owner}"
    kernel.mount("home", str(home), "tmpfs", _PRIVATE, options)
    for path in writable:
        kernel.mount(path, path, None, kernel.MS_BIND)
    kernel.set_read_only("/", True, recursive=True)
    for path in (str(home), *writable):
        kernel.set_read_only(path, False)


def build_alone(
    home: Path, size: int, owner: int, needed: tuple[str, ...], writable: tuple[str, ...] = ()
) -> None:
    """Builds a view that holds only the home and some read-only folders and files.

    Args:
        home: The folder of the process. It has the same name in the view.
        size: Limit of the bytes below `home`.
        owner: User and group id of `home`.
        needed: The other folders and files. Those that do not exist are left out. `/proc` shows
            only the processes of this process namespace, or nothing if the kernel refuses. With
            it, `/tmp` leads to a folder of the home, unless another folder lies in it.
        writable: Folders that stay writable. They must lie in no folder of `needed`.

    Raises:
        OSError: The kernel refuses a step.
    """
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    root = str(home)
    kernel.mount("root", root, "tmpfs", _PRIVATE, "size=1m,mode=755")
    shown = set(needed) - {"/proc"}
    for path in (*_outermost(shown), os.devnull, *writable):  # a folder shows all that lies in it
        _show(path, root)
    for folder in filter(os.path.isdir, (root + path for path in SEALED)):
        kernel.mount("sealed", folder, "tmpfs", _PRIVATE, "size=4k,mode=755")
    if "/proc" in needed:
        os.mkdir(root + "/proc")
        with contextlib.suppress(OSError):
            kernel.mount("proc", root + "/proc", "proc", _PRIVATE | kernel.MS_NOEXEC)
        if not os.path.lexists(root + "/tmp"):
            os.symlink(f"{home}/tmp", root + "/tmp")
    inside = root + str(home)
    os.makedirs(inside)
    kernel.set_read_only(root, True, recursive=True)
    for path in writable:
        kernel.set_read_only(root + path, False)
    options = f"size={size},nr_inodes=65536,mode=700,uid={owner},gid={owner}"
    kernel.mount("home", inside, "tmpfs", _PRIVATE, options)
    kernel.enter_root(root)


def _show(path: str, root: str) -> None:
    """Adds a folder or file to a new root. For a link, adds its final target and a link to it."""
    place = root + path
    if not os.path.exists(path) or os.path.lexists(place):
        return
    os.makedirs(os.path.dirname(place), exist_ok=True)
    if os.path.islink(path):
        target = os.path.realpath(path)  # links between the two are not in the view
        os.symlink(target, place)
        _show(target, root)
        return
    if os.path.isdir(path):
        os.mkdir(place)
    else:
        os.close(os.open(place, os.O_CREAT | os.O_WRONLY))
    kernel.mount(path, place, None, kernel.MS_BIND | kernel.MS_REC)


def hide_processes() -> None:
    """Mounts a /proc that shows only the processes of this process namespace.

    Raises:
        OSError: The kernel refuses, as it does in containers that mask parts of /proc.
    """
    kernel.mount("proc", "/proc", "proc", _PRIVATE | kernel.MS_NOEXEC)


def _hide(folder: str, kept: dict[str, int]) -> None:
    """Mounts an empty file system over a folder and binds the kept folders into it."""
    inside = [path for path in kept if path.startswith(folder + "/")]
    if folder in kept:
        return
    kernel.mount("hidden", folder, "tmpfs", _PRIVATE, "size=1m,mode=755")
    for path in inside:
        with contextlib.suppress(FileExistsError):
            os.makedirs(path)
        kernel.mount(f"/proc/self/fd/{kept[path]}", path, None, kernel.MS_BIND | kernel.MS_REC)


def _outermost(places: set[str]) -> tuple[str, ...]:
    outermost: list[str] = []
    for place in sorted(places):
        if not any(contains(outer, place) for outer in outermost):
            outermost.append(place)
    return tuple(outermost)


def contains(folder: str, path: str) -> bool:
    """Whether a path is a folder or lies in it; both are absolute."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")
