"""Landlock: the kernel's own sandbox for unprivileged processes, without mounts or root.

A process may read and execute below some folders, and write below others. It may not use TCP, and
it may not send signals to processes outside of the sandbox or trace them. Restrictions that the
kernel's version does not know are left out.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable

from kernel_gym.sandbox.kernel_calls import syscall

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG, _PATH_BENEATH = 1, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _TRUNCATE = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_LAST_RIGHT = {1: 12, 2: 13}
"""Highest file-system right by version of Landlock; 14 (truncate) from version 3 on."""
_NET_TCP, _NET_SINCE = 0b11, 4
_SCOPES, _SCOPES_SINCE = 0b11, 6


class _Ruleset(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _PathRule(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32)]


def version() -> int:
    """Returns the kernel's version of Landlock.

    Raises:
        OSError: The kernel has no Landlock, or it is switched off.
    """
    return syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION_FLAG)


def restrict(
    readable: Iterable[str],
    writable: Iterable[str],
    sealed: tuple[str, ...] = (),
    network: bool = False,
) -> int:
    """Restricts this process and its descendants for good.

    `forbid_new_privileges` must be called before.

    Args:
        readable: Folders and files to read and execute.
        writable: Folders and files to read and write.
        sealed: Parts of readable folders that cannot be read. Names of files in them can be listed.
        network: Whether TCP is allowed.

    Returns:
        The kernel's version of Landlock.

    Raises:
        OSError: The kernel refuses.
    """
    known = version()
    rights = (1 << (_LAST_RIGHT.get(known, 14) + 1)) - 1
    rules = _Ruleset(
        rights,
        _NET_TCP if known >= _NET_SINCE and not network else 0,
        _SCOPES if known >= _SCOPES_SINCE else 0,
    )
    size = 8 if known < _NET_SINCE else 16 if known < _SCOPES_SINCE else 24
    ruleset = syscall(_CREATE_RULESET, ctypes.byref(rules), ctypes.c_size_t(size), 0)
    try:
        for path in readable:
            _allow_around(ruleset, path, _READ & rights, sealed)
        for path in writable:
            _allow(ruleset, path, rights)
        syscall(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)
    return known


def _allow_around(ruleset: int, path: str, rights: int, sealed: tuple[str, ...]) -> None:
    """Allows a folder without its sealed parts: Landlock knows no exceptions, so by its entries."""
    if path in sealed:
        return
    if not any(part.startswith(path.rstrip("/") + "/") for part in sealed):
        _allow(ruleset, path, rights)
        return
    _allow(ruleset, path, rights & _READ_DIR)
    with os.scandir(path) as entries:
        inside = [entry.path for entry in entries if not entry.is_symlink()]
    for entry in inside:
        _allow_around(ruleset, entry, rights, sealed)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what is not there needs no rule
    try:
        if not os.path.isdir(path):
            rights &= _FILE_RIGHTS
        rule = _PathRule(rights, folder)
        syscall(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(folder)
