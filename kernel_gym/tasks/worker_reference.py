"""A reference that is code of a suite, so that a confined worker computes it and not the judge."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import torch

Dims = Mapping[str, int]
"""The size of each axis."""
Value = torch.Tensor | int | float
"""One argument of a call: a tensor or a scalar."""


class WorkerReference(ABC):
    """The facts that the judge needs to get an oracle and a yardstick from calls of such code."""

    @abstractmethod
    def exact_dims(self, dims: Dims) -> Dims | None:
        """Returns the dimensions of the same call in fp64, which is the oracle of a workload.

        None where the code takes no fp64: then its own result is the oracle.
        """

    @abstractmethod
    def perturbed(
        self, inputs: Mapping[str, Value], seed: int, coarse: bool = False
    ) -> dict[str, Value]:
        """Moves each real value among the inputs by one rounding.

        Args:
            inputs: The inputs of a call.
            seed: It decides the directions.
            coarse: Whether to move the values of one byte, and no others.
        """
