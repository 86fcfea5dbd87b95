"""Draws of the workgroups that the timing model records, one for each launch."""

from __future__ import annotations

import random


class SampleDraws:
    """The random numbers of one device that select sampled workgroups.

    Args:
        alike: Whether each launch is sampled alike, unless its call has a draw of its own.
    """

    def __init__(self, alike: bool) -> None:
        self._paid, self._trials = random.Random(), random.Random()
        self._alike = alike
        self.seed(0)
        self.begin(tuning=False)

    def seed(self, seed: int) -> None:
        """Starts the draws from a seed. The worker must not learn the seed."""
        self._paid.seed(seed)
        self._trials.seed(f"trials {seed}")
        self._began = self._paid.getstate()

    def begin(self, tuning: bool, samples: int | None = None, again: bool = False) -> None:
        """Starts a call.

        Args:
            tuning: Whether the call answers a question of host code: it changes no later draw.
            samples: The draw of this call; by default the draws continue.
            again: Whether to repeat the draws of the last call.
        """
        self._draws = self._trials if tuning else self._paid
        self._drawn_for_call = samples is not None
        if samples is not None and not tuning:
            self._paid.seed(samples)
        elif again:
            self._paid.setstate(self._began)
        if not tuning:
            self._began = self._paid.getstate()

    def draw(self) -> int:
        """Returns a seed for a launch: one of its own, so that none reveals the next one."""
        alike = self._alike and not self._drawn_for_call
        return 0 if alike else self._draws.getrandbits(64)
