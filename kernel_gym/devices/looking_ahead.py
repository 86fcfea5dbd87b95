"""The next calls of a judge, for a session that uses its waiting time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from kernel_gym.tasks.problem import Value


@dataclass(frozen=True)
class ExpectedCall:
    """A call that the judge will make.

    Attributes:
        inputs: Returns its inputs, by name.
        dims: The dimensions of the workload.
        repeats: The seed by which it will be recorded again and again; None for a plain call.
    """

    inputs: Callable[[], Mapping[str, Value]]
    dims: Mapping[str, int]
    repeats: int | None = None


@runtime_checkable
class LookingAhead(Protocol):
    """A session that can use its waiting time if it knows the next calls."""

    def expect(self, calls: Sequence[ExpectedCall]) -> None:
        """Takes the first call of each shape, and the repeats, in the order of the judge.

        The session makes ready what they need. Verdicts do not depend on that.
        """
