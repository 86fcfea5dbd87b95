"""Comparison of codes and scales of quantised outputs: equal up to rounding."""

from __future__ import annotations

import torch

APART_SHARE = 0.01
"""Share of the elements of an output that may differ from the oracle by one code."""


BORDER_ROUNDINGS = 8
"""Roundings of float32 from the border of two codes within which a value may become either."""


def wrong_codes(
    found: torch.Tensor,
    expected: torch.Tensor,
    share: float = APART_SHARE,
    quotients: torch.Tensor | None = None,
) -> torch.Tensor:
    """Returns a mask of the codes that are wrong beyond rounding.

    A value near the border of two codes may round to either. So a code may differ from the
    oracle's by one, if at most `share` of the codes do. Otherwise all codes that differ are wrong.
    Where the values are known, those at a border do not count: inputs of few bits divided by a
    scale that is a power of two lie on borders exactly, up to one in sixteen.

    Args:
        found: The codes to check, an integer type or an 8-bit float.
        expected: The oracle's codes, int64, or fp64 values that the 8-bit float represents.
        share: The share of all elements that may differ by one code.
        quotients: The values that become codes, fp64; None if they are not known.
    """
    apart = (_rank(found) - _rank(expected.to(found.dtype))).abs()
    if quotients is not None:
        border = (found.double() + expected.double()) / 2
        slack = BORDER_ROUNDINGS * torch.finfo(torch.float32).eps / 2 * quotients.abs()
        apart = apart.masked_fill((apart == 1) & ((quotients - border).abs() <= slack), 0)
    excused = (apart > 0).double().mean() <= share
    return apart > 1 if excused else apart > 0


def wrong_scales(found: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    """Returns a mask of the float32 scales that are off by more than 16 units of rounding.

    Each scale is compared alone. A call may have only one, which is too few for a yardstick.
    """
    unit = torch.finfo(torch.float32).eps / 2
    return ~((found.double() - expected).abs() <= 16 * unit * expected.abs())


def _rank(codes: torch.Tensor) -> torch.Tensor:
    """Returns the rank of each code among the codes of its type; neighbours differ by one."""
    if not codes.dtype.is_floating_point:
        return codes.long()
    bits = codes.view(torch.int8).long()
    nan = torch.isnan(codes.float())
    rank = torch.where(bits >= 0, bits, -(bits + 128))
    return torch.where(nan, 1 << 20, rank)
