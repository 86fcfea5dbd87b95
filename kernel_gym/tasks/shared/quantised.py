"""Problems whose outputs are codes and their scales."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from kernel_gym.tasks.codes import wrong_codes, wrong_scales
from kernel_gym.tasks.problem import Problem, Value


class Quantised(Problem):
    """Outputs whose names hold "scale" are scales, all others are codes."""

    def mismatches(
        self, name: str, found: torch.Tensor, inputs: Mapping[str, Value], expected: torch.Tensor
    ) -> torch.Tensor:
        """Codes at most one apart, at borders or on at most 1 % of the elements; rounded scales."""
        if "scale" in name:
            return wrong_scales(found, expected)
        return wrong_codes(found, expected, quotients=self.quotients(name, inputs))

    def quotients(self, name: str, inputs: Mapping[str, Value]) -> torch.Tensor | None:
        """Returns the values that become codes in fp64, in the shape of an output.

        None, the default, says that a kernel rounds more than the quotient.
        """
        return None
