"""Counts a candidate's kernel launches on a GPU, and swallows them for the no-op replay.

For Triton it uses Triton's hook for launchers. For HIP it uses functions that the linker puts in
front of those of the runtime (`launch_gate.cpp`).
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from typing import Any


class Launches:
    """Counts the launches of this process since the last `start`."""

    def __init__(self) -> None:
        self.noop = False
        self._count = 0
        self._libraries: list[ctypes.CDLL] = []
        self.compiled: list[tuple[Any, Any]] = []
        """Source and metadata of each compiled Triton kernel."""

    def forget(self) -> None:
        """Forgets everything about the last candidate."""
        self._libraries.clear()
        self.compiled.clear()

    def start(self, noop: bool) -> None:
        """Restarts the count at zero; with `noop`, launches are counted and not made."""
        self.noop, self._count = noop, 0
        for library in self._libraries:
            library.kernel_gym_launches_start(ctypes.c_int(noop))

    @property
    def count(self) -> int:
        """Launches since `start`, including those that were not made."""
        return self._count + sum(lib.kernel_gym_launches_count() for lib in self._libraries)

    def watch_library(self, library: ctypes.CDLL) -> None:
        """Adds a HIP candidate that was linked with the launch gate."""
        self._libraries.append(library)

    def watch_triton(self) -> None:
        """Replaces the launcher of Triton's active driver by a counting one."""
        from triton.runtime import driver

        active = driver.active
        make = active.launcher_cls
        active.launcher_cls = lambda src, metadata: self._launcher(make, src, metadata)

    def _launcher(self, make: Any, src: Any, metadata: Any) -> Any:
        launch = make(src, metadata)
        self.compiled.append((src, metadata))

        class Counted:
            """The launcher of the driver, with a counter."""

            def __call__(inner, *args: Any, **kwargs: Any) -> Any:
                self._count += 1
                return None if self.noop else launch(*args, **kwargs)

            def __getattr__(inner, name: str) -> Any:
                return getattr(launch, name)

        return Counted()


@contextlib.contextmanager
def without_tuning() -> Iterator[None]:
    """Makes autotuned kernels compile all their configurations and choose none permanently."""
    from triton.runtime.autotuner import Autotuner

    bench = Autotuner._bench

    def compile_only(tuner: Any, *args: Any, config: Any, **meta: Any) -> list[float]:
        with contextlib.suppress(Exception):  # the real tuning will meet the error again
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
    """Registers every autotuned kernel that is created from now on."""
    from triton.runtime.autotuner import Autotuner

    make = Autotuner.__init__

    def noted(tuner: Any, *args: Any, **kwargs: Any) -> None:
        make(tuner, *args, **kwargs)
        _tuners.append(tuner)

    Autotuner.__init__ = noted


def forget_tuning() -> None:
    """Makes autotuned kernels choose again at their next call."""
    for tuner in _tuners:
        tuner.cache.clear()
