"""A filter that refuses system calls that no candidate needs, also to its descendants.

The filter is a program for the kernel's packet-filter machine. It is written for x86-64. On other
processors there is no filter, which `kernel-gym doctor` reports.
"""

from __future__ import annotations

import errno
import platform
from collections.abc import Iterable

from kernel_gym.sandbox import kernel_calls as kernel

Instruction = tuple[int, int, int, int]
"""Operation, jump distances if true and if false, constant."""

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_X86_64, _X32_CALLS = 0xC000003E, 0x40000000

_MMAP, _SOCKET, _CLONE, _CLONE3 = 9, 41, 56, 435
_MAP_SHARED, _MAP_GROWSDOWN = 0x01, 0x100
_CLONE_THREAD = 0x10000
_NAMESPACES = 0x7E020080
"""All flags of `clone` that make namespaces."""
_FAMILIES = (1, 2, 10, 16)
"""Families of sockets that are allowed: local, IPv4, IPv6, netlink. Network namespaces do not cover
others, such as vsock."""

REFUSED = {
    "acct": 163, "add_key": 248, "adjtimex": 159, "bpf": 321, "chroot": 161,
    "clock_adjtime": 305, "clock_settime": 227, "delete_module": 176, "fanotify_init": 300,
    "finit_module": 313, "fsconfig": 431, "fsmount": 432, "fsopen": 430, "fspick": 433,
    "init_module": 175, "io_uring_enter": 426, "io_uring_register": 427, "io_uring_setup": 425,
    "ioperm": 173, "iopl": 172, "kcmp": 312, "kexec_file_load": 320, "kexec_load": 246,
    "keyctl": 250, "listmount": 458, "memfd_secret": 447, "modify_ldt": 154, "mount": 165,
    "mount_setattr": 442, "move_mount": 429, "name_to_handle_at": 303, "nfsservctl": 180,
    "open_by_handle_at": 304, "open_tree": 428, "perf_event_open": 298, "personality": 135,
    "pidfd_getfd": 438, "pidfd_open": 434, "pivot_root": 155, "process_madvise": 440,
    "process_vm_readv": 310, "process_vm_writev": 311, "ptrace": 101, "quotactl": 179,
    "quotactl_fd": 443, "reboot": 169, "request_key": 249, "setdomainname": 171, "setns": 308,
    "settimeofday": 164, "sethostname": 170, "statmount": 457, "swapoff": 168, "swapon": 167,
    "syslog": 103, "umount2": 166, "unshare": 272, "userfaultfd": 323, "vhangup": 153,
    "vmsplice": 278,
}  # fmt: skip
"""Refused to every worker."""
REFUSED_IN_ONE_PROCESS = {
    "execve": 59, "execveat": 322, "fork": 57, "ioprio_set": 251, "memfd_create": 319,
    "mq_open": 240, "msgget": 68, "sched_setaffinity": 203, "sched_setattr": 314,
    "sched_setparam": 142, "sched_setscheduler": 144, "semget": 64, "setpriority": 141,
    "shmat": 30, "shmget": 29, "socketpair": 53, "vfork": 58,
}  # fmt: skip
"""Refused also to a worker that must stay one process: calls that hold memory outside of it, and
those by which it could have the machine give it less of its processors. The time in which it waits
for one is not charged."""


def restrict(one_process: bool) -> None:
    """Filters the system calls of this process and of its descendants, permanently.

    `forbid_new_privileges` must be called before.

    Args:
        one_process: Also refuse other processes and shared memory. Threads are allowed.

    Raises:
        OSError: The kernel refuses, or there is no filter for this processor.
    """
    if platform.machine() != "x86_64":
        raise OSError(errno.ENOSYS, f"there is no filter for {platform.machine()}")
    kernel.set_call_filter(_encode(program(one_process)))


def program(one_process: bool) -> list[Instruction]:
    """Returns the instructions of the filter."""
    refused = REFUSED | (REFUSED_IN_ONE_PROCESS if one_process else {})
    numbers = sorted(refused.values())
    return [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, _X86_64),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32_CALLS),
        _error(errno.EPERM),
        *_for_call(_CLONE3, [_error(errno.ENOSYS)]),  # a filter cannot read its flags
        *_for_call(_CLONE, _check_clone(one_process)),
        *_for_call(_SOCKET, [_error(errno.EPERM)] if one_process else _check_socket()),
        *(_for_call(_MMAP, _check_mapping()) if one_process else ()),
        *(part for number in numbers for part in _for_call(number, [_error(errno.EPERM)])),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _error(number: int) -> Instruction:
    return (_RETURN, 0, 0, _ERROR | number)


def _argument(index: int) -> Instruction:
    """Loads the lower half of an argument, which holds all flags that are checked."""
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * index)


def _for_call(number: int, block: Iterable[Instruction]) -> list[Instruction]:
    """Adds the test for a system call before a block, which must end with a return."""
    block = list(block)
    return [(_EQUAL, 0, len(block), number), *block]


def _check_clone(one_process: bool) -> list[Instruction]:
    needs_thread = [(_ANY_BIT, 1, 0, _CLONE_THREAD), _error(errno.EPERM)] if one_process else []
    return [
        _argument(0),
        (_ANY_BIT, 0, 1, _NAMESPACES),
        _error(errno.EPERM),
        *needs_thread,
        (_RETURN, 0, 0, _ALLOW),
    ]


def _check_socket() -> list[Instruction]:
    """Allows the families of sockets that network namespaces cover."""
    tests = [(_EQUAL, len(_FAMILIES) - i, 0, family) for i, family in enumerate(_FAMILIES)]
    return [_argument(0), *tests, _error(errno.EPERM), (_RETURN, 0, 0, _ALLOW)]


def _check_mapping() -> list[Instruction]:
    """Allows private mappings that do not grow: RLIMIT_DATA counts only those."""
    return [
        _argument(3),
        (_ANY_BIT, 0, 1, _MAP_SHARED | _MAP_GROWSDOWN),
        _error(errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _encode(instructions: list[Instruction]) -> bytes:
    return b"".join(
        code.to_bytes(2, "little") + bytes((if_true, if_false)) + value.to_bytes(4, "little")
        for code, if_true, if_false, value in instructions
    )
