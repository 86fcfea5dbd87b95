"""A bench in a process of its own: the judge's clock must not wait for other threads of Python."""

from __future__ import annotations

import signal
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Self

import torch

from kernel_gym.devices.base import InfraError
from kernel_gym.imports.bench.import_bench import ImportBench
from kernel_gym.imports.bench.importing import verdict_on
from kernel_gym.imports.manifest import DeviceVerdict
from kernel_gym.imports.readers.base import FoundTask, Reader
from kernel_gym.sandbox.kernel_calls import set_parent_death_signal


class BenchProcess:
    """An `ImportBench` in another process. Several of them share a real GPU.

    Args:
        device: The device's name, such as `cuda:0`.
        compilers: How many compilers may work at a time for one reference.
    """

    def __init__(self, device: str, compilers: int = 1) -> None:
        self.device = device
        self._compilers = compilers
        self._pool: ProcessPoolExecutor | None = None
        self._opening: Future[None] | None = None

    def __enter__(self) -> Self:
        """Starts the process, which opens the device meanwhile."""
        self._opening = self._started().submit(_ready)
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
        self._pool = None

    def open(self) -> None:
        """Waits until the device is open there, so that an error comes before any task.

        Raises:
            InfraError: It cannot be used.
        """
        if self._opening is not None:
            self._opening.result()

    def verdict(
        self,
        found: FoundTask,
        reader: Reader,
        checkout: Path,
        folder: Path | None,
        traced: bool,
    ) -> DeviceVerdict:
        """Imports one task there; see `kernel_gym.imports.bench.importing.verdict_on`.

        Raises:
            InfraError: The device failed, or the process ended. The next call starts another one.
        """
        try:
            return (
                self._started().submit(_verdict, found, reader, checkout, folder, traced).result()
            )
        except BrokenProcessPool:
            self._pool = None
            raise InfraError(f"a process of the import on {self.device} ended") from None

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                1, get_context("spawn"), _make, (self.device, self._compilers)
            )
        return self._pool


_bench: list[ImportBench] = []
"""The bench of this process."""


def _make(device: str, compilers: int) -> None:
    """Prepares this process: it ends with its parent, and leaves the other CPUs to others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends it after its task
    set_parent_death_signal(signal.SIGKILL)
    torch.set_num_threads(1)
    _bench.append(ImportBench(device, compilers=compilers))


def _ready() -> None:
    _bench[0].open()


def _verdict(
    found: FoundTask, reader: Reader, checkout: Path, folder: Path | None, traced: bool
) -> DeviceVerdict:
    return verdict_on(found, reader, checkout, _bench[0], folder, traced)
