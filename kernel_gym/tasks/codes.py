"""Codes and scales of quantised outputs: when two of them are the same but for rounding."""

from __future__ import annotations

import torch

APART_SHARE = 0.01
"""Share of the elements of an output that may lie one code beside the oracle's."""


def wrong_codes(
    found: torch.Tensor, expected: torch.Tensor, share: float = APART_SHARE
) -> torch.Tensor:
    """Mask of the codes that no rounding excuses.

    A value near the border of two codes may round to either. So a code may lie one beside the
    oracle's, as long as no more than `share` of the codes do; beyond that all of them are wrong.

    Args:
        found: codes, an integer type or an 8-bit float.
        expected: the oracle's, int64, or fp64 values that the 8-bit float represents.
        share: of all elements.
    """
    apart = (_rank(found) - _rank(expected.to(found.dtype))).abs()
    excused = (apart > 0).double().mean() <= share
    return apart > 1 if excused else apart > 0


def wrong_scales(found: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    """Mask of the float32 scales off by more than 16 units of rounding.

    Each is judged by itself: a call may have no more than one, too few for a yardstick.
    """
    unit = torch.finfo(torch.float32).eps / 2
    return ~((found.double() - expected).abs() <= 16 * unit * expected.abs())


def _rank(codes: torch.Tensor) -> torch.Tensor:
    """Place of each code in the order of its type: neighbours differ by one."""
    if not codes.dtype.is_floating_point:
        return codes.long()
    bits = codes.view(torch.int8).long()
    nan = torch.isnan(codes.float())
    rank = torch.where(bits >= 0, bits, -(bits + 128))
    return torch.where(nan, 1 << 20, rank)
