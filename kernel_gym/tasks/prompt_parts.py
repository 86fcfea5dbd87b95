"""The parts of a prompt that a problem may state itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PromptParts:
    """Texts that stand in a prompt in place of those that are made from axes and arguments.

    Attributes:
        operation: What to compute, in words.
        signature: The functions to define, and the calls that are made of them.
        rules: What the source may do, as a list.
    """

    operation: str
    signature: str
    rules: str
