"""Terms for the kernel itself: its compiled code and the length of its source."""

from __future__ import annotations

import math

from kernel_gym.records import Evaluation, Outcome
from kernel_gym.rewards.reward import NOTHING_KNOWN, Context
from kernel_gym.rewards.terms import term

MAX_WAVES_PER_SIMD = 8.0
"""Waves that one SIMD of a CDNA3 compute unit can hold."""


@term
def copied(evaluation: Evaluation) -> float:
    """Returns 1 if a kernel that passed is the task's start kernel, up to comments and layout.

    Use it with a negative weight.
    """
    return float(evaluation.outcome is Outcome.PASSED and evaluation.copied)


@term
def spills(evaluation: Evaluation, worst: int = 256) -> float:
    """Returns the spilled registers of the worst kernel, from 0 to 1 (`worst`), on a log scale.

    Use it with a negative weight.
    """
    spilled = max((k.vgpr_spills + k.sgpr_spills for k in evaluation.kernels), default=0)
    return min(math.log1p(spilled) / math.log1p(worst), 1.0)


@term
def occupancy(evaluation: Evaluation) -> float:
    """Returns the lowest waves per SIMD of any kernel, over the maximum; 0 if unknown."""
    waves = [k.waves_per_simd for k in evaluation.kernels if k.waves_per_simd is not None]
    return min(min(waves) / MAX_WAVES_PER_SIMD, 1.0) if waves else 0.0


@term
def length(
    evaluation: Evaluation,
    context: Context = NOTHING_KNOWN,
    free: int = 8192,
    worst: int = 65536,
) -> float:
    """Returns the excess length of the source: 0 up to `free` characters, 1 from `worst` on.

    Use it with a small negative weight. It is 0 if the length is not known.
    """
    over = (context.source_chars or 0) - free
    return min(max(over / (worst - free), 0.0), 1.0)
