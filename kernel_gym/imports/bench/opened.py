"""An opened device with what the admission of tasks needs on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernel_gym.admission.head_room import HeadRoom
    from kernel_gym.evaluator import Evaluator
    from kernel_gym.imports.bench.compiled.process import CompiledTimer


class OpenedDevice:
    """Opens a device at its first use, for one thread.

    Args:
        name: The device's name.
        compilers: How many compilers may work at a time for one reference.
    """

    def __init__(self, name: str, compilers: int = 1) -> None:
        self.name = name
        self._compilers = compilers
        self._evaluator: Evaluator | None = None
        self._rooms: HeadRoom | None = None
        self._compiled: CompiledTimer | None = None

    def open(self) -> None:
        """Opens the device now.

        Raises:
            InfraError: It cannot be used.
        """
        assert self.evaluator is not None

    @property
    def evaluator(self) -> Evaluator:
        """Evaluates on the device."""
        if self._evaluator is None:
            from kernel_gym.evaluator import Evaluator
            from kernel_gym.storage.secret import PUBLIC

            self._evaluator = Evaluator(self.name, seed=1, secret=PUBLIC)
        return self._evaluator

    @property
    def rooms(self) -> HeadRoom:
        """Computes the head-room of tasks."""
        if self._rooms is None:
            from kernel_gym.admission.head_room import HeadRoom

            self._rooms = HeadRoom(self.evaluator.device)
        return self._rooms

    @property
    def compiled(self) -> CompiledTimer:
        """Times references beside their compiled form."""
        if self._compiled is None:
            from kernel_gym.imports.bench.compiled.process import CompiledTimer

            self._compiled = CompiledTimer(threads=self._compilers)
        return self._compiled

    def close(self) -> None:
        """Ends all workers and processes."""
        for part in (self._compiled, self._rooms, self._evaluator):
            if part is not None:
                part.close()
        self._compiled = self._rooms = self._evaluator = None
