"""Serves the template process: it has all libraries loaded, and forks children in milliseconds.

`kernel_gym.worker.template` is its program and states what the children can become. The process
never uses a GPU and never runs candidate code; its children do. When the judge's end of the pipe
closes, it ends its children and returns.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import selectors
import shutil
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kernel_gym.protocol import values
from kernel_gym.protocol.request import Answer, decode, encode_answer
from kernel_gym.protocol.template import Fork, Forked, Kill, Killed, ReadTimes, Times
from kernel_gym.sandbox import confine, view
from kernel_gym.sandbox import kernel_calls as kernel
from kernel_gym.sandbox.huge_pages import HugePages
from kernel_gym.sandbox.processor_times import ProcessorTimes
from kernel_gym.sandbox.watch import Watch

_PATHS = values.listed(values.text)
_IDLE = 1.0
"""Seconds between two looks for ended children while nothing is measured."""


@dataclass(frozen=True)
class Role:
    """A role that a child can take.

    Args:
        module: The name of a module with `main(descriptors, options)`.
        confined: Whether the child runs untrusted code.
        libraries: Modules besides it. The template imports all before it forks the first child of
            the role: every child would import them by itself, and most judges ask for none.
    """

    module: str
    confined: bool = True
    libraries: tuple[str, ...] = ()


def serve(
    control: socket.socket, roles: Mapping[str, Role], spare: Iterator[None] | None = None
) -> None:
    """Serves fork and kill requests until the judge is gone.

    Args:
        control: The pipe to the judge.
        roles: What children can become, by the name in requests.
        spare: Work that no first request needs. A step of it is done when nothing is asked.
    """
    kernel.become_subreaper()
    needed = view.needed_folders()
    try:
        control.send(b"ready")
    except BrokenPipeError:  # the judge has ended while this process loaded its libraries
        return
    children = Children()
    homes: set[str] = set()
    try:
        _serve(control, roles, children, needed, homes, spare or iter(()))
    finally:
        for pid in list(children):
            children.end(pid)
        for home in homes:  # of workers whose judge could not clean up
            shutil.rmtree(home, ignore_errors=True)


def _serve(
    control: socket.socket,
    roles: Mapping[str, Role],
    children: Children,
    needed: tuple[str, ...],
    homes: set[str],
    spare: Iterator[None],
) -> None:
    watch, pages = Watch(), HugePages()
    selector = selectors.DefaultSelector()
    selector.register(control, selectors.EVENT_READ)
    while True:
        ready = _is_asked(selector, spare, watch)
        for pid in watch.overrun():
            _kill(pid)
        children.reap()
        children.end_strays()
        if not ready:
            continue
        data, fds, _, _ = socket.recv_fds(control, 1 << 16, 8)
        if not data:
            return
        header = json.loads(data)
        if header["do"] != Fork.verb:
            _send(control, _answer(header, children, watch))
            continue
        request = decode(Fork, header)
        _load(roles[request.role])
        pages.before_fork()
        pid = os.fork()
        if pid == 0:
            control.close()
            _child(request, roles[request.role], fds, needed)
        children.add(pid, request.role)
        if request.family:
            name = values.text(request.family["name"], "name")
            watch.add(pid, name, values.whole(request.family["memory"], "memory"))
        if roles[request.role].confined:
            homes.add(request.home)
        for fd in fds:
            os.close(fd)
        _send(control, Forked(pid))


def _is_asked(selector: selectors.BaseSelector, spare: Iterator[None], watch: Watch) -> bool:
    """Waits for a request, or until the next look at the children. Spare work is done meanwhile."""
    while not selector.select(timeout=0):
        if next(spare, spare) is spare:
            return bool(selector.select(_IDLE if (wait := watch.wait) is None else wait))
    return True


def _load(role: Role) -> None:
    modules = (*role.libraries, role.module)
    if sys.modules.keys() >= set(modules):
        return
    for name in modules:
        importlib.import_module(name)
    gc.freeze()  # a collection in a child would copy the pages of all loaded objects


def _answer(header: dict[str, object], children: Children, watch: Watch) -> Answer:
    if header["do"] == ReadTimes.verb:
        return Times(children.times.read())
    kill = decode(Kill, header)
    status = children.end(kill.pid, kill.grace)
    return Killed(status, watch.forget(kill.pid))


def _send(control: socket.socket, answer: Answer) -> None:
    control.send(json.dumps(encode_answer(answer)).encode())


def _child(request: Fork, role: Role, fds: list[int], needed: tuple[str, ...]) -> None:
    """Becomes the requested role; never returns."""
    status = 1
    try:
        confine.die_with_parent()
        os.setsid()
        fds = _keep_only(fds)
        if role.confined:
            _become_worker(request, needed)
        importlib.import_module(role.module).main(fds, request.options)
        status = 0
    except BaseException:  # nothing may lead the child back into the template
        with contextlib.suppress(BaseException):
            traceback.print_exc()
    finally:
        os._exit(status)


def _become_worker(request: Fork, needed: tuple[str, ...]) -> None:
    home = Path(request.home)
    environment = confine.private_environment(home) | request.environment
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)
    user = None if request.trusted else confine.FIRST_USER + os.getpid()
    confinement = confine.Confinement()
    confine.isolate_namespaces(confinement)
    if "process namespace" in confinement.active:
        _enter_process_namespace()
        confine.die_with_parent()
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = environment["TMPDIR"]  # an import may have chosen another one
    devices = tuple(_PATHS(request.options.get("devices", []), "devices"))
    hidden = tuple(request.hidden)
    folders = values.or_none(_PATHS)(request.options.get("folders"), "folders")
    if folders is None:
        rooms = confine.Rooms(home, needed, tuple(request.writable), devices, hidden)
    else:
        rooms = confine.Rooms(home, tuple(folders), alone=True)
    confine.confine(confinement, rooms, _limits(request.limits), user)
    request.options["confinement"] = {
        "active": confinement.active,
        "missing": confinement.missing,
    }


def _limits(limits: Mapping[str, object]) -> confine.WorkerLimits:
    def size(name: str) -> int:
        return values.whole(limits[name], name)

    return confine.WorkerLimits(
        memory=size("memory"),
        file_size=size("file_size"),
        home_size=size("home_size"),
        open_files=size("open_files"),
        processes=size("processes"),
        cpu_seconds=size("cpu_seconds"),
        one_process=values.truth(limits["one_process"], "one_process"),
    )


def _enter_process_namespace() -> None:
    """Forks the first process of the namespace, waits for it and exits with its status."""
    init = os.fork()
    if init:
        _close_all()
        _, status = os.waitpid(init, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def _keep_only(fds: list[int]) -> list[int]:
    """Moves the received descriptors to 3, 4 and so on, and closes every other one."""
    high = [os.dup2(fd, 100 + i) for i, fd in enumerate(fds)]
    kept = [os.dup2(fd, 3 + i) for i, fd in enumerate(high)]
    os.closerange(3 + len(kept), 4096)
    return kept


def _close_all() -> None:
    os.closerange(3, 4096)


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


class Children:
    """The children of the template: their exit statuses and their processor times."""

    def __init__(self) -> None:
        self.times = ProcessorTimes()
        self._statuses: dict[int, int | None] = {}

    def __iter__(self) -> Iterator[int]:
        """Iterates over the processes that were not ended yet."""
        return iter(self._statuses)

    def add(self, pid: int, role: str) -> None:
        """Adds a child that was forked."""
        self._statuses[pid] = None
        self.times.add(pid, role)

    def end(self, pid: int, grace: float = 0.0) -> int | None:
        """Ends a child; returns its exit status if it had ended by itself, else None."""
        deadline = time.monotonic() + grace
        self.reap()
        while self._statuses.get(pid, 0) is None and time.monotonic() < deadline:
            time.sleep(0.002)
            self.reap()
        status = self._statuses.get(pid)
        if pid in self._statuses and status is None:
            _kill(pid)
            self._wait(pid, 0)
        self._statuses.pop(pid, None)
        self.end_strays()
        return status

    def end_strays(self) -> None:
        """Ends processes that a worker left behind: the kernel makes them children of this one."""
        for _ in range(1000):
            strays = [pid for pid in _own_children() if pid not in self._statuses]
            if not strays:
                return
            for pid in strays:
                _kill(pid)
            for pid in strays:
                self._wait(pid, 0)

    def reap(self) -> None:
        """Notes which children have ended by themselves."""
        for pid in [p for p, status in self._statuses.items() if status is None]:
            status = self._wait(pid, os.WNOHANG)
            if status is not None:
                self._statuses[pid] = os.waitstatus_to_exitcode(status)

    def _wait(self, pid: int, options: int) -> int | None:
        """Waits for a process; returns its status if it has ended."""
        with contextlib.suppress(ChildProcessError):
            done, status, usage = os.wait4(pid, options)
            if done:
                self.times.ended(pid, usage.ru_utime + usage.ru_stime)
                return status
        return None


def _own_children() -> list[int]:
    """The children of this process."""
    thread = os.getpid()
    try:
        text = Path(f"/proc/self/task/{thread}/children").read_text()
    except OSError:
        return []
    return [int(pid) for pid in text.split()]
