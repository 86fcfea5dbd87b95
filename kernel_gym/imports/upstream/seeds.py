"""Moves the seeds that a suite's tests set, so that their own generators draw other values."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy
import torch

OWNERS: tuple[tuple[object, str], ...] = (
    *((torch, "manual_seed"), (torch.random, "manual_seed")),
    *((torch.cuda, "manual_seed"), (torch.cuda, "manual_seed_all")),
    *((random, "seed"), (numpy.random, "seed"), (numpy.random, "default_rng")),
)
"""Functions that take a seed, by module and name."""


class MovedSeeds:
    """Adds a number to every integer that functions of `OWNERS` are called with.

    `torch.Generator.manual_seed` is a method of a built-in type and stays as it is.
    """

    def __init__(self) -> None:
        self.shift = 0
        """The number that is added to a seed."""
        for owner, name in OWNERS:
            setattr(owner, name, self._moved(getattr(owner, name)))

    def _moved(self, function: Callable[..., object]) -> Callable[..., object]:
        def seed(*args: object, **kwargs: object) -> object:
            args = tuple(self._plus(value) for value in args)
            return function(*args, **{name: self._plus(value) for name, value in kwargs.items()})

        return seed

    def _plus(self, value: object) -> object:
        return value + self.shift if type(value) is int else value
