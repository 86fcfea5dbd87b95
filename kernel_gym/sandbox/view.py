"""The file system as a worker sees it: read-only, its home in memory, others' folders empty.

Built in a mount namespace of the worker's own. Folders in which users keep things are replaced by
empty ones that hold only what the interpreter needs.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

from kernel_gym.sandbox import kernel_calls as kernel

HIDDEN = ("/tmp", "/var/tmp", "/dev/shm", "/home", "/root", "/run", "/mnt")
"""Folders that a worker sees empty but for what is needed from them."""
SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc", "/opt", "/proc", "/dev", "/sys")
"""Folders that a worker may read besides those of the interpreter."""
DEVICES = ("/dev/null", "/dev/zero", "/dev/full")
"""Device files that a worker may write."""
_PRIVATE = kernel.MS_NOSUID | kernel.MS_NODEV


def needed_folders() -> tuple[str, ...]:
    """Where the interpreter and all modules loaded so far come from, outermost folders only."""
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
        home: the worker's folder; a file system in memory of its own is put there.
        size: most bytes below it.
        owner: user and group id that it belongs to.
        needed: folders that stay readable wherever they are.
        writable: folders that stay writable.
        hidden: files that look empty wherever they are.

    Raises:
        OSError: the kernel refuses a step.
    """
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
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


def build_alone(home: Path, size: int, owner: int, needed: tuple[str, ...]) -> None:
    """Builds a view that holds nothing but some folders and files, read-only, and the home.

    Args:
        home: the process's folder; it has the same name in the view.
        size: most bytes below it.
        owner: user and group id that it belongs to.
        needed: what else is there; what does not exist is left out.

    Raises:
        OSError: the kernel refuses a step.
    """
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    root = str(home)
    kernel.mount("root", root, "tmpfs", _PRIVATE, "size=1m,mode=755")
    for path in (*needed, os.devnull):
        _show(path, root)
    inside = root + str(home)
    os.makedirs(inside)
    kernel.set_read_only(root, True, recursive=True)
    options = f"size={size},nr_inodes=65536,mode=700,uid={owner},gid={owner}"
    kernel.mount("home", inside, "tmpfs", _PRIVATE, options)
    kernel.enter_root(root)


def _show(path: str, root: str) -> None:
    """Puts a folder or file into a new root; a link stays one, and leads to what it names."""
    place = root + path
    if not os.path.exists(path) or os.path.lexists(place):
        return
    os.makedirs(os.path.dirname(place), exist_ok=True)
    if os.path.islink(path):
        os.symlink(os.readlink(path), place)
        _show(os.path.realpath(path), root)
        return
    if os.path.isdir(path):
        os.mkdir(place)
    else:
        os.close(os.open(place, os.O_CREAT | os.O_WRONLY))
    kernel.mount(path, place, None, kernel.MS_BIND | kernel.MS_REC)


def hide_processes() -> None:
    """Shows only the processes of this process namespace in /proc.

    Raises:
        OSError: the kernel refuses, as it does in containers that mask parts of /proc.
    """
    kernel.mount("proc", "/proc", "proc", _PRIVATE | kernel.MS_NOEXEC)


def _hide(folder: str, kept: dict[str, int]) -> None:
    """Puts an empty file system over a folder, and back into it what is kept."""
    inside = [path for path in kept if path.startswith(folder + "/")]
    if folder in kept:
        return
    kernel.mount("hidden", folder, "tmpfs", _PRIVATE, "size=1m,mode=755")
    for path in inside:
        with contextlib.suppress(FileExistsError):
            os.makedirs(path)
        kernel.mount(f"/proc/self/fd/{kept[path]}", path, None, kernel.MS_BIND | kernel.MS_REC)


def _outermost(places: set[str]) -> tuple[str, ...]:
    found: list[str] = []
    for place in sorted(places):
        if not any(place == outer or place.startswith(outer.rstrip("/") + "/") for outer in found):
            found.append(place)
    return tuple(found)
