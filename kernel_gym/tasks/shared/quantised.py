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
        """Codes at most one apart, on at most 1 % of the elements; scales but for rounding."""
        return (wrong_scales if "scale" in name else wrong_codes)(found, expected)
