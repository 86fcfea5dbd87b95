"""Landlock: the kernel's own sandbox for unprivileged processes, without mounts or root.

Read and execute below some folders, write below others; no TCP; no signals and no tracing out of
the sandbox. What a kernel's version lacks is left out.
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
"""Highest file-system right by version; 14 (truncate) from the third on."""
_NET_TCP, _NET_SINCE = 0b11, 4
_SCOPES, _SCOPES_SINCE = 0b11, 6


class _Ruleset(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _PathRule(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32)]


def version() -> int:
    """The kernel's version of Landlock.

    Raises:
        OSError: there is none, or it is switched off.
    """
    return syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION_FLAG)


def restrict(readable: Iterable[str], writable: Iterable[str]) -> int:
    """Restricts this process and its descendants for good; returns the version in force.

    Needs `forbid_new_privileges` first.

    Raises:
        OSError: the kernel refuses.
    """
    found = version()
    rights = (1 << (_LAST_RIGHT.get(found, 14) + 1)) - 1
    rules = _Ruleset(
        rights,
        _NET_TCP if found >= _NET_SINCE else 0,
        _SCOPES if found >= _SCOPES_SINCE else 0,
    )
    size = 8 if found < _NET_SINCE else 16 if found < _SCOPES_SINCE else 24
    ruleset = syscall(_CREATE_RULESET, ctypes.byref(rules), ctypes.c_size_t(size), 0)
    try:
        for path in readable:
            _allow(ruleset, path, _READ & rights)
        for path in writable:
            _allow(ruleset, path, rights)
        syscall(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)
    return found


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
