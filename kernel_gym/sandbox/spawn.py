"""The judge's side of the template: starts it, forks children from it, and ends them."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from dataclasses import asdict, dataclass
from pathlib import Path

from kernel_gym.plans.limits import MAX_CODES_BYTES, MAX_PLAN_JSON_BYTES
from kernel_gym.protocol import values
from kernel_gym.protocol.request import Request, encode
from kernel_gym.protocol.template import Fork, Kill, ReadTimes
from kernel_gym.sandbox.channel import MAX_BUFFER, MAX_HEADER, Channel
from kernel_gym.sandbox.confine import ONE_THREAD, WorkerLimits

_MAX_ANSWERS = {"recorder": MAX_PLAN_JSON_BYTES}
"""Most bytes of JSON in an answer of a role that runs candidates."""


class TemplateError(RuntimeError):
    """The template process could not be started or has died; no candidate is to blame."""


@dataclass(frozen=True)
class Family:
    """Children that share a memory budget. All of them end when their sum exceeds it.

    Args:
        name: Unique to the family.
        memory: Bytes that they and their own children may hold together.
    """

    name: str
    memory: int


class Child:
    """A forked process with a pipe to it, and a private folder when it is a worker."""

    def __init__(self, template: Template, pid: int, channel: Channel, home: Path | None) -> None:
        self.pid = pid
        self.channel = channel
        self.ended_for = ""
        """Why the template ended the process, if it did; set by `close`."""
        self._template = template
        self._home = home
        self._closing = threading.Lock()
        self._closed: tuple[int | None] | None = None
        """The exit status, once it is closed."""

    @property
    def template_alive(self) -> bool:
        """Whether the template lives. The kernel kills the children of one that died."""
        return self._template.alive

    def close(self, grace: float = 0.0) -> int | None:
        """Kills the process and everything it started; removes its folder.

        Args:
            grace: Seconds to wait for its own end, if it has closed its pipe already.

        Returns:
            The exit status (minus the signal's number) of a process that had ended by itself. Who
            closes it again gets the same.
        """
        with self._closing:
            if self._closed is None:
                self.channel.close()
                status, self.ended_for = self._template.kill(self.pid, grace)
                if self._home is not None:
                    shutil.rmtree(self._home, ignore_errors=True)
                self._closed = (status,)
        return self._closed[0]


_KEPT_HEAP = {
    "MALLOC_TRIM_THRESHOLD_": str(64 << 20),
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),
}
"""Has the C library keep freed memory up to a size. Getting it from the kernel again takes 20 times
longer than what is done with it."""


def _environment() -> dict[str, str]:
    """Returns the template's variables. It brings devices up itself, even in `kernel-gym sim`."""
    outer = {name: value for name, value in os.environ.items() if name != "KERNEL_GYM_SIM_DEVICE"}
    return outer | ONE_THREAD | _KEPT_HEAP


class Template:
    """A process with all libraries loaded that forks workers and devices. Thread-safe.

    It loads them while the judge does other work. The first request waits until it is ready.
    """

    START_TIMEOUT = 600.0
    """Wall seconds until it is given up. It needs some five seconds of a processor."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        self._sock = ours
        self._silent = False
        # -P keeps the working folder off the import path; a shadowing torch.py must not load.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "kernel_gym.worker", str(theirs.fileno())],
            env=_environment(),
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()
        self._ready = False

    def _wait_until_ready(self) -> None:
        """Waits until the libraries are loaded.

        Raises:
            TemplateError: They were not, and the process was ended.
        """
        self._sock.settimeout(self.START_TIMEOUT)
        try:
            ready = self._sock.recv(16)
        except OSError as error:
            ready = str(error).encode()
        if ready != b"ready":
            self._silent = True
            self.close()
            raise TemplateError(
                "the worker template did not start: the machine is overloaded, or see what "
                "`kernel-gym doctor` says "
                f"(exit status {self._process.poll()}, found {ready!r}, expected b'ready')"
            )
        self._ready = True

    def fork(
        self,
        role: str,
        fds: list[int],
        options: dict[str, object] | None = None,
        limits: WorkerLimits | None = None,
        environment: dict[str, str] | None = None,
        trusted: bool = False,
        writable: list[str] | None = None,
        family: Family | None = None,
        buffers: int = 0,
    ) -> Child:
        """Forks a child. Its descriptor 3 is the other end of `Child.channel`; `fds` follow.

        Args:
            role: A key of :data:`kernel_gym.worker.template.ROLES`.
            fds: Descriptors for the child.
            options: Options of the role.
            limits: Resource limits of a worker.
            environment: Variables besides the private ones of a worker.
            trusted: Whether a worker runs only the project's code; it keeps the judge's user id.
            writable: Folders that a worker may write besides its own.
            family: The family with which it shares a memory budget.
            buffers: Limit of the raw buffers in a message from the child.

        Raises:
            TemplateError: The template is gone.
        """
        from kernel_gym.storage.secret import secret_files  # not before the template has started

        ours, theirs = socket.socketpair()
        home = Path(tempfile.mkdtemp(prefix="kernel-gym-")) if role != "device" else None
        request = Fork(
            role=role,
            options=options or {},
            home=str(home),
            environment=environment or {},
            limits=asdict(limits or WorkerLimits()),
            trusted=trusted,
            writable=writable or [],
            hidden=list(secret_files()),
            family=asdict(family) if family else {},
        )
        answer = self._ask(request, [theirs.fileno(), *fds])
        theirs.close()
        header = _MAX_ANSWERS.get(role, MAX_HEADER)
        size = MAX_CODES_BYTES if role == "recorder" else MAX_BUFFER
        return Child(
            self, values.whole(answer["pid"], "pid"), Channel(ours, buffers, header, size), home
        )

    def kill(self, pid: int, grace: float = 0.0) -> tuple[int | None, str]:
        """Kills a child and its process group.

        Returns:
            Its status if it had ended before, and why the template had ended it, if so.
        """
        if self._process.poll() is not None:
            return None, ""
        answer = self._ask(Kill(pid, grace), [])
        status = values.or_none(values.integer)(answer["status"], "status")
        why = values.text(answer["why"], "why")
        return status - 256 if status is not None and status > 128 else status, why

    def times(self) -> dict[str, float]:
        """Returns processor seconds of its children by role, and its own, since it started."""
        seconds = values.mapping(self._ask(ReadTimes(), [])["seconds"], "seconds")
        return {role: values.number(spent, role) for role, spent in seconds.items()}

    @property
    def alive(self) -> bool:
        """Whether it can still fork. A template that was just killed shows by not answering."""
        return not self._silent and self._process.poll() is None

    def close(self) -> None:
        """Ends the template and every child of it."""
        self._sock.close()
        if not self._ready:  # it has no children
            self._process.kill()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _ask(self, request: Request, fds: list[int]) -> dict[str, object]:
        with self._lock:
            if self._silent:  # a late answer would pass for the answer to the next request
                raise TemplateError(f"the worker template is gone (pid {self._process.pid})")
            if not self._ready:
                self._wait_until_ready()
            try:
                socket.send_fds(self._sock, [json.dumps(encode(request)[0]).encode()], fds)
                answer = self._sock.recv(1 << 12)
            except OSError as error:
                self._silent = True
                raise TemplateError(f"the worker template is gone: {error}") from error
        if not answer:
            self._silent = True
            raise TemplateError(f"the worker template died (pid {self._process.pid})")
        known: dict[str, object] = json.loads(answer)
        return known


_shared: dict[int, Template] = {}
_sharing = threading.Lock()


def shared_template() -> Template:
    """Returns the template of this process; starts one at first use, after a fork or its death."""
    pid = os.getpid()
    with _sharing:  # two threads would each start one, and the first would end with its children
        if pid not in _shared or not _shared[pid].alive:
            if pid not in _shared:
                atexit.register(_close_shared, pid)
            _shared[pid] = Template()
        return _shared[pid]


def _close_shared(pid: int) -> None:
    """Ends the template of a process that exits; a copy of that process has none."""
    if os.getpid() == pid and pid in _shared:
        _shared.pop(pid).close()
