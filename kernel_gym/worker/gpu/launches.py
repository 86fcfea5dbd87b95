"""Counts a candidate's kernel launches on a GPU, and swallows them for the no-op replay.

Through Triton's own hook for launchers, and for HIP through functions that the linker puts before
the runtime's (`launch_gate.cpp`).
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from typing import Any


class Launches:
    """Launches of this process since the last `start`."""

    def __init__(self) -> None:
        self.noop = False
        self._count = 0
        self._libraries: list[ctypes.CDLL] = []
        self.compiled: list[tuple[Any, Any]] = []
        """Source and metadata of every Triton kernel that was compiled, once each."""

    def forget(self) -> None:
        """Begins anew for another candidate."""
        self._libraries.clear()
        self.compiled.clear()

    def start(self, noop: bool) -> None:
        """Begins to count from zero."""
        self.noop, self._count = noop, 0
        for library in self._libraries:
            library.kernel_gym_launches_start(ctypes.c_int(noop))

    @property
    def count(self) -> int:
        """Launches since then, swallowed ones too."""
        return self._count + sum(lib.kernel_gym_launches_count() for lib in self._libraries)

    def watch_library(self, library: ctypes.CDLL) -> None:
        """Adds a HIP candidate that was linked with the launch gate."""
        self._libraries.append(library)

    def watch_triton(self) -> None:
        """Puts a counting launcher into Triton's active driver."""
        from triton.runtime import driver

        active = driver.active
        make = active.launcher_cls
        active.launcher_cls = lambda src, metadata: self._launcher(make, src, metadata)

    def _launcher(self, make: Any, src: Any, metadata: Any) -> Any:
        launch = make(src, metadata)
        self.compiled.append((src, metadata))

        class Counted:
            """The driver's launcher, counted."""

            def __call__(inner, *args: Any, **kwargs: Any) -> Any:
                self._count += 1
                return None if self.noop else launch(*args, **kwargs)

            def __getattr__(inner, name: str) -> Any:
                return getattr(launch, name)

        return Counted()


@contextlib.contextmanager
def without_tuning() -> Iterator[None]:
    """Autotuned kernels compile all their configurations once each, and choose none for good."""
    from triton.runtime.autotuner import Autotuner

    bench = Autotuner._bench

    def compile_only(tuner: Any, *args: Any, config: Any, **meta: Any) -> list[float]:
        with contextlib.suppress(Exception):  # the real choice will see the error again
            tuner.fn.run(*args, **(meta | config.all_kwargs()))
        return [1.0, 1.0, 1.0]

    Autotuner._bench = compile_only
    try:
        yield
    finally:
        Autotuner._bench = bench
        forget_tuning()


_tuners: list[Any] = []


def watch_tuning() -> None:
    """Notes every autotuned kernel from now on."""
    from triton.runtime.autotuner import Autotuner

    make = Autotuner.__init__

    def noted(tuner: Any, *args: Any, **kwargs: Any) -> None:
        make(tuner, *args, **kwargs)
        _tuners.append(tuner)

    Autotuner.__init__ = noted


def forget_tuning() -> None:
    """Autotuned kernels choose anew at their next call."""
    for tuner in _tuners:
        tuner.cache.clear()
