"""Terms about the kernel itself: what the compiler made of it, and how long it is."""

from __future__ import annotations

import math

from kernel_gym.records import Evaluation
from kernel_gym.rewards.reward import NOTHING_KNOWN, Context
from kernel_gym.rewards.terms import term

MOST_WAVES = 8.0
"""Waves that one SIMD of a CDNA3 compute unit can hold."""


@term
def spills(evaluation: Evaluation, worst: int = 256) -> float:
    """Registers spilled by the worst kernel, from 0 for none to 1 for `worst`, on a log scale.

    Meant for a negative weight.
    """
    spilled = max((k.vgpr_spills + k.sgpr_spills for k in evaluation.kernels), default=0)
    return min(math.log1p(spilled) / math.log1p(worst), 1.0)


@term
def occupancy(evaluation: Evaluation) -> float:
    """Waves a SIMD of the kernel that has the fewest, over the most there can be; 0 if unknown."""
    waves = [k.waves_per_simd for k in evaluation.kernels if k.waves_per_simd is not None]
    return min(min(waves) / MOST_WAVES, 1.0) if waves else 0.0


@term
def length(
    evaluation: Evaluation,
    context: Context = NOTHING_KNOWN,
    free: int = 8192,
    worst: int = 65536,
) -> float:
    """How far the source is over `free` characters: 0 up to there, 1 at `worst`.

    Meant for a small negative weight. 0 when the length is not known.
    """
    over = (context.source_chars or 0) - free
    return min(max(over / (worst - free), 0.0), 1.0)
