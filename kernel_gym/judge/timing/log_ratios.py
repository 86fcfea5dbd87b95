"""The interval of a mean log ratio, and the noise of log ratios (rules 14, 15 and 18)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from kernel_gym.judge.protocol import RATIO_CLAMP, TIMING


@dataclass(frozen=True)
class LogRatioInterval:
    """Trimmed mean of log(baseline / candidate), and the half-width of its t-interval."""

    mean: float
    half: float

    @property
    def is_beyond_pay(self) -> bool:
        """Whether the interval lies beyond the range that is paid: its width does not matter."""
        least, most = map(math.log, RATIO_CLAMP)
        return self.mean - self.half > most or self.mean + self.half < least

    @property
    def width(self) -> float:
        """The half-width that is wanted."""
        return max(TIMING.half_width, TIMING.half_width_share * abs(self.mean))


def pairs_needed(workloads: Sequence[Sequence[float]]) -> list[int]:
    """Returns how many pairs each workload of a split needs, from those of a first stage.

    The mean of the lower bounds of a split's workloads is paid. So their half-widths have one
    budget: the sum of those that are wanted. The least pairs that keep it are in proportion to
    `a ** (2 / 3)`, where `a / sqrt(n)` is the half-width of a workload after n pairs (by a
    multiplier of Lagrange).

    C. Stein, "A two-sample test for a linear hypothesis whose power is independent of the
    variance", Annals of Mathematical Statistics 16(3), 1945: the spread of a first stage fixes the
    number of all measurements. For normal values the mean does not depend on that spread. A rule
    that looks at each new measurement stops too early, when the spread looks small by chance.
    `two_stage_interval` is the interval that belongs to this number.

    Args:
        workloads: Log ratios of the first stage of each workload.

    Returns:
        For each workload an even number from that of the first stage to the limit of the protocol.
    """
    counts, firsts = list(map(len, workloads)), list(map(interval, workloads))
    paid = [number for number, first in enumerate(firsts) if not first.is_beyond_pay]
    budget = sum(firsts[number].width for number in paid)
    while paid and sum(firsts[number].half for number in paid) > budget:
        parts = {n: (firsts[n].half * math.sqrt(len(workloads[n]))) ** (2 / 3) for n in paid}
        scale = (sum(parts.values()) / budget) ** 2
        enough = [n for n in paid if parts[n] * scale <= len(workloads[n])]
        if not enough:
            for number in paid:
                needed = math.ceil(parts[number] * scale)
                counts[number] = min(TIMING.max_pairs, needed + needed % 2)
            break
        budget -= sum(firsts[number].half for number in enough)
        paid = [number for number in paid if number not in enough]
    return counts


def two_stage_interval(effects: Sequence[float]) -> LogRatioInterval:
    """Computes the interval of all pairs, of which the first ones decided how many there are.

    Pairs whose spread looks small by chance are followed by too few others, so that the spread of
    all of them is too small as well. Stein's interval has the spread of the first stage alone; this
    one has the wider of the two.

    Args:
        effects: Log ratios, in the order in which they were measured.
    """
    everything, first = interval(effects), interval(effects[: TIMING.min_pairs])
    of_first = first.half * math.sqrt(min(1.0, TIMING.min_pairs / len(effects)))
    return LogRatioInterval(everything.mean, max(everything.half, of_first))


def interval(effects: Sequence[float]) -> LogRatioInterval:
    """Computes Yuen's t-interval of the trimmed mean, which single outliers do not affect.

    K. K. Yuen, Biometrika 61(1), 1974. It uses the winsorized deviation, and the degrees of freedom
    that remain after trimming.

    Args:
        effects: Log ratios, at least six.
    """
    import numpy as np

    ordered, count = np.sort(effects), len(effects)
    cut = int(TIMING.trimmed_share * count)
    left = count - 2 * cut
    trimmed = ordered[cut : count - cut]
    spread = float(np.clip(ordered, trimmed[0], trimmed[-1]).std(ddof=1))
    error = spread * math.sqrt(count - 1) / math.sqrt(left * (left - 1))
    return LogRatioInterval(float(trimmed.mean()), _student(left - 1) * error)


@cache
def _student(freedom: int) -> float:
    """Returns the quantile of Student's t-distribution for the interval."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.5 + TIMING.confidence / 2))


def quantile_of_noise(effects: Mapping[str, Sequence[float]]) -> float:
    """Returns the 95th percentile of |log ratio| of a kernel and itself: the noise floor (rule 18).

    Args:
        effects: Log ratios, by workload.
    """
    import numpy as np

    everything = [abs(effect) for side in effects.values() for effect in side]
    return float(np.quantile(everything, 0.95))
