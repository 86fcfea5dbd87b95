"""Schedules: a parametrised kernel and the values of its parameters.

A problem with a `tune.py` that defines `TUNING` can be played as `KernelTune-v0`. There an action
chooses a schedule instead of writing a source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Template


@dataclass(frozen=True)
class Tuning:
    """A parametrised Triton kernel.

    Attributes:
        space: The possible values of each parameter, by name.
        template: A source with `$NAME` in place of the value of a parameter.

    Example:
        >>> tuning = Tuning({"BLOCK": (64, 128), "WARPS": (1, 2)}, "f(BLOCK=$BLOCK, warps=$WARPS)")
        >>> tuning.render((1, 0))
        'f(BLOCK=128, warps=1)'
    """

    space: Mapping[str, tuple[int, ...]]
    template: str

    def schedule(self, choice: Sequence[int]) -> dict[str, int]:
        """Returns the value of each parameter for a choice.

        Args:
            choice: The index of each parameter's value, in the order of the space.
        """
        pairs = zip(self.space.items(), choice, strict=True)
        return {name: values[int(position)] for (name, values), position in pairs}

    def render(self, choice: Sequence[int]) -> str:
        """Returns the source for a choice."""
        return Template(self.template).substitute(self.schedule(choice))
