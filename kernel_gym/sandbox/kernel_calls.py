"""Linux calls that Python's library lacks, as functions that raise OSError."""

from __future__ import annotations

import ctypes
import os

CLONE_NEWNS = 0x00020000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18

_MOUNT_SETATTR = 442  # the same number on every architecture, like all calls since 5.1
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_MNT_DETACH = 2
_MADV_COLLAPSE = 25
_HUGE_PAGE = 2 << 20
_MOUNT_ATTR_RDONLY, _MOUNT_ATTR_NOSUID = 1, 2
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP = 1, 4, 24
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 36, 38, 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_CAPABILITY_VERSION = 0x20080522
_SECCOMP, _SECCOMP_SET_FILTER, _SECCOMP_KEEP_SPEED = 317, 1, 4

_libc = ctypes.CDLL(None, use_errno=True)


def check(result: int) -> int:
    """Returns the result of a call of the C library.

    Raises:
        OSError: The result is negative.
    """
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def syscall(number: int, *args: object) -> int:
    """Makes a system call by number and returns its result.

    Raises:
        OSError: The call failed.
    """
    return check(_libc.syscall(ctypes.c_long(number), *args))


def unshare(flags: int) -> None:
    """Moves this process to new namespaces of the kinds in `flags`."""
    check(_libc.unshare(flags))


def mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    """Mounts a file system."""
    encoded = (os.fsencode(source), os.fsencode(target), kind.encode() if kind else None)
    check(_libc.mount(*encoded, ctypes.c_ulong(flags), options.encode() or None))


def enter_root(folder: str) -> None:
    """Makes a mount the root of this process's mount namespace and detaches all other mounts."""
    os.chdir(folder)
    check(_libc.pivot_root(b".", b"."))
    check(_libc.umount2(b".", _MNT_DETACH))  # the old root lies on top of the new one
    os.chdir("/")


def set_read_only(path: str, read_only: bool, recursive: bool = False) -> None:
    """Makes a mount read-only without effect of set-user-id bits, or writable."""
    given = _MOUNT_ATTR_RDONLY | _MOUNT_ATTR_NOSUID if read_only else 0
    cleared = 0 if read_only else _MOUNT_ATTR_RDONLY
    attributes = (ctypes.c_uint64 * 4)(given, cleared, 0, 0)
    flags = _AT_RECURSIVE if recursive else 0
    where = ctypes.c_char_p(os.fsencode(path))
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    syscall(_MOUNT_SETATTR, _AT_FDCWD, where, flags, ctypes.byref(attributes), size)


def set_parent_death_signal(signal: int) -> None:
    """Sets the signal that this process gets when its parent ends. A new user id clears it."""
    check(_libc.prctl(_PR_SET_PDEATHSIG, signal, 0, 0, 0))


def forbid_new_privileges() -> None:
    """Stops programs that this process starts from gaining rights by their file."""
    check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))


def set_dumpable(dumpable: bool) -> None:
    """Sets whether other processes of the same user may read this process's memory."""
    check(_libc.prctl(_PR_SET_DUMPABLE, int(dumpable), 0, 0, 0))


def collapse_pages(start: int, end: int) -> None:
    """Gathers the small pages of a range of private memory into huge pages, since Linux 6.1.

    Raises:
        OSError: The kernel does not do this here.
    """
    start, end = -(-start // _HUGE_PAGE) * _HUGE_PAGE, end // _HUGE_PAGE * _HUGE_PAGE
    if start < end:
        size = ctypes.c_size_t(end - start)
        check(_libc.madvise(ctypes.c_void_p(start), size, _MADV_COLLAPSE))


def become_subreaper() -> None:
    """Makes orphaned descendants children of this process."""
    check(_libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))


def drop_capabilities() -> None:
    """Drops every capability, permanently."""
    for number in range(64):
        _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)  # refused above the last and without rights
    _libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    check(_libc.capset(ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)())))


class _Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


def set_call_filter(instructions: bytes) -> None:
    """Filters the system calls of this process permanently, on x86-64.

    `forbid_new_privileges` must be called before. With a filter, older kernels switch off
    speculative execution, which slows everything down; the flag here keeps it on.
    """
    program = _Filter(len(instructions) // 8, instructions)
    syscall(_SECCOMP, _SECCOMP_SET_FILTER, _SECCOMP_KEEP_SPEED, ctypes.byref(program))
