"""The launchers of one GPU: one for candidates, one for baselines, started ahead and kept.

A launcher holds no code of a candidate besides the plan that is loaded. So it serves one candidate
after another, and another one takes its place once a kernel has faulted or did not end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kernel_gym.devices.base import InfraError
from kernel_gym.launcher.process import LauncherLostError, LauncherProcess
from kernel_gym.launcher.shared_file import SharedFile

Loaded = TypeVar("Loaded")
MAX_PLANS = 2
"""Plans that a launcher has: of a candidate, and of the baseline that is timed beside it."""


@dataclass(frozen=True)
class LauncherRecipe:
    """How a launcher is started."""

    vendor: str
    """`cuda` or `rocm`."""
    flush: int
    """Bytes that make caches cold."""
    library: str | None = None
    """The file of the driver's library; None where the loader finds it."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that select the GPU."""
    pin: bool = True
    """Whether the driver may pin the shared memory."""
    staging: bytes = b""
    """The handle of the judge's memory on the device, see `kernel_gym.devices.gpu.staging`."""


class LauncherSlot:
    """The place of a launcher, which is started again after a fault.

    Args:
        recipe: How it is started.
        shared: Memory for inputs and results.
    """

    def __init__(self, recipe: LauncherRecipe, shared: SharedFile) -> None:
        self._recipe, self._shared = recipe, shared
        self._loaded: dict[int, tuple[object, Any]] = {}
        self._process = self._start()

    def process(self) -> LauncherProcess:
        """Returns the launcher.

        Raises:
            InfraError: It does not start.
        """
        if self._process.lost:
            self.renew()
        try:
            self._process.ready()
        except LauncherLostError as error:
            self._process, self._loaded = self._start(), {}
            raise InfraError(f"a launcher could not be started: {error}") from error
        return self._process

    def select(
        self, key: object, load: Callable[[LauncherProcess, int], Loaded]
    ) -> tuple[int, Loaded]:
        """Loads something unless the launcher has it, in place of what was selected longest ago.

        Args:
            key: Identifies it.
            load: Loads it under a number.

        Returns:
            Its number, and what loading has returned.
        """
        process = self.process()
        number = next((n for n, (known, _) in self._loaded.items() if known is key), None)
        if number is not None:
            self._loaded[number] = self._loaded.pop(number)
            return number, self._loaded[number][1]
        free = set(range(MAX_PLANS)) - self._loaded.keys()
        number = min(free) if free else next(iter(self._loaded))
        self._loaded.pop(number, None)
        self._loaded[number] = key, load(process, number)
        return number, self._loaded[number][1]

    def renew(self) -> None:
        """Ends the launcher and starts another one, which gets its device meanwhile."""
        self._process.close()
        self._process, self._loaded = self._start(), {}

    def close(self) -> None:
        """Ends the launcher."""
        self._process.close()

    def _start(self) -> LauncherProcess:
        recipe = self._recipe
        return LauncherProcess(
            recipe.vendor,
            self._shared,
            recipe.flush,
            recipe.library,
            recipe.environment,
            recipe.pin,
            recipe.staging,
        )


class Launchers:
    """The launchers of one GPU.

    Args:
        recipe: How they are started.
        shared: Memory for inputs and results.
    """

    def __init__(self, recipe: LauncherRecipe, shared: SharedFile) -> None:
        self._recipe, self._shared = recipe, shared
        self._free = {True: LauncherSlot(recipe, shared), False: LauncherSlot(recipe, shared)}

    def take(self, trusted: bool) -> LauncherSlot:
        """Returns the launcher for candidates or for baselines; another one while it is in use."""
        slot = self._free.pop(trusted, None)
        if slot is None and trusted:
            slot = self._free.pop(False, None)
        return slot or LauncherSlot(self._recipe, self._shared)

    def give(self, slot: LauncherSlot, trusted: bool) -> None:
        """Takes a launcher back."""
        for use in (trusted, False):
            if use not in self._free:
                self._free[use] = slot
                return
        slot.close()

    def close(self) -> None:
        """Ends all launchers that are not in use."""
        for slot in self._free.values():
            slot.close()
        self._free = {}
