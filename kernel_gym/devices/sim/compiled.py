"""Hands kernels that a suite's own code has compiled to the next worker with the same source.

An import runs that code in three workers, one after the other: to state the workloads, as the
candidate and as the baseline. Compiling takes nearly all of their time. Workers of a suite's own
code write what they compile to a file. The judge copies its bytes to the next worker and never
reads them. A candidate gets a copy only if its source is that code, letter by letter. It is charged
the seconds that compiling took, as if it had compiled itself.
"""

from __future__ import annotations

import fcntl
import hashlib
import math
import os
import threading
from collections import OrderedDict
from dataclasses import dataclass

from kernel_gym.devices.budget import RESERVE, HostBudget, Spent
from kernel_gym.protocol.compiled import LENGTH, SIZE

CAPACITY = 4
"""Sources whose kernels are kept. An import works on one task at a time."""


@dataclass(frozen=True)
class KnownKernels:
    """Kernels that workers with one source have compiled.

    Args:
        content: The records.
        seconds: Host seconds of the requests that compiled.
    """

    content: bytes = b""
    seconds: float = 0.0


class CompiledKernels:
    """The kernels of the last few sources. Thread-safe."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, KnownKernels] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, source: str) -> KnownKernels:
        """Returns what is known of a source."""
        with self._lock:
            return self._known.get(_digest(source), KnownKernels())

    def keep(self, source: str, known: KnownKernels) -> None:
        """Replaces what is known of a source."""
        with self._lock:
            self._known[_digest(source)] = known
            self._known.move_to_end(_digest(source))
            while len(self._known) > CAPACITY:
                self._known.popitem(last=False)


class KernelFile:
    """The file of one session.

    Args:
        kernels: What is known of sources.
        keeps: Whether the session runs a suite's own code, so that its kernels are kept.
    """

    def __init__(self, kernels: CompiledKernels, keeps: bool) -> None:
        self._kernels, self._keeps = kernels, keeps
        self._source = ""
        self._known = KnownKernels()
        memory = os.memfd_create("kernel-gym-compiled", os.MFD_ALLOW_SEALING)
        self._file = os.fdopen(memory, "r+b", buffering=0)
        self.descriptor = self._file.fileno()
        self._file.truncate(SIZE)
        seals = fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, seals)

    def fill(self, source: str, budget: HostBudget | None) -> None:
        """Copies the kernels of a source into the file, before the worker loads the source.

        Args:
            source: The source, without what the problem adds to every source.
            budget: The seconds of a candidate, which is charged for the kernels.
        """
        known = self._kernels.of(source)
        if budget is not None:
            if budget.host - known.seconds < RESERVE:
                return
            budget.draw(Spent(host=known.seconds))
        self._source, self._known = source, known
        os.pwrite(self.descriptor, known.content, LENGTH.size)
        os.pwrite(self.descriptor, LENGTH.pack(len(known.content)), 0)

    def keep(self, seconds: float, stopped: bool) -> None:
        """Keeps what was compiled in a request.

        Args:
            seconds: Host seconds of the request.
            stopped: Whether it was stopped for its time. A candidate that compiles as much would be
                stopped, too, so that it gets no kernels.
        """
        if not self._keeps:
            return
        (used,) = LENGTH.unpack(os.pread(self.descriptor, LENGTH.size, 0))
        if used > len(self._known.content):
            content = os.pread(self.descriptor, min(used, SIZE), LENGTH.size)
            seconds = math.inf if stopped else self._known.seconds + seconds
            self._known = KnownKernels(content, seconds)
            self._kernels.keep(self._source, self._known)

    def close(self) -> None:
        """Closes the file. It may be closed already."""
        self._file.close()


def _digest(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()
