"""The filter on system calls, in processes of its own that ask for what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from kernel_gym.sandbox import seccomp

PROBE = """
import errno, json, mmap, os, socket, sys, threading
from kernel_gym.sandbox import kernel_calls as kernel
from kernel_gym.sandbox import seccomp

CASES = {
    "fork": lambda: os._exit(0) if os.fork() == 0 else os.wait(),
    "thread": lambda: threading.Thread(target=list).start(),
    "memfd": lambda: os.memfd_create("x"),
    "shared memory": lambda: mmap.mmap(-1, 4096),
    "private memory": lambda: mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS),
    "growing memory": lambda: mmap.mmap(
        -1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x100
    ),
    "local socket": lambda: socket.socketpair(),
    "vsock": lambda: socket.socket(40, socket.SOCK_STREAM),
    "user namespace": lambda: kernel.unshare(kernel.CLONE_NEWUSER),
    "clone of a user namespace": lambda: kernel.syscall(56, kernel.CLONE_NEWUSER | 17, 0, 0, 0, 0),
    "clone3": lambda: kernel.syscall(435, None, 0),
    "io_uring": lambda: kernel.syscall(425, 1, None),
    "key": lambda: kernel.syscall(248, b"user", b"kg", b"1", 1, -2),
    "call of the x32 kind": lambda: kernel.syscall(0x40000000 | 39),
    "own number": lambda: kernel.syscall(39),
}
kernel.forbid_new_privileges()
seccomp.restrict(sys.argv[1] == "one process")
outcomes = {}
for name, case in CASES.items():
    try:
        case()
        outcomes[name] = "allowed"
    except OSError as error:
        outcomes[name] = errno.errorcode[error.errno]
print(json.dumps(outcomes))
"""
ALWAYS = {
    "thread": "allowed",
    "private memory": "allowed",
    "vsock": "EPERM",
    "user namespace": "EPERM",
    "clone of a user namespace": "EPERM",
    "clone3": "ENOSYS",
    "io_uring": "EPERM",
    "key": "EPERM",
    "call of the x32 kind": "EPERM",
    "own number": "allowed",
}
OF_ONE_PROCESS = ("fork", "memfd", "shared memory", "growing memory", "local socket")


def _probe(kind):
    done = subprocess.run([sys.executable, "-c", PROBE, kind], capture_output=True, text=True)
    if "no filter for" in done.stderr:
        pytest.skip(done.stderr.splitlines()[-1])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("kind", "rest"), [("one process", "EPERM"), ("many processes", "allowed")]
)
def test_what_is_refused_and_what_is_not(kind, rest):
    assert _probe(kind) == ALWAYS | dict.fromkeys(OF_ONE_PROCESS, rest)


@pytest.mark.parametrize("one_process", [True, False])
def test_every_jump_ends_inside_the_program(one_process):
    program = seccomp.program(one_process)
    for place, (code, if_true, if_false, _) in enumerate(program):
        if code not in (0x06, 0x20):  # neither a return nor a load
            assert place + 1 + max(if_true, if_false) < len(program)
    assert program[-1][0] == 0x06


def test_no_number_is_refused_twice():
    numbers = [*seccomp.REFUSED.values(), *seccomp.REFUSED_IN_ONE_PROCESS.values()]
    assert len(set(numbers)) == len(numbers)
