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
    def settled(self) -> bool:
        """Whether the interval is narrow enough, or lies beyond the range that is paid.

        Beyond that range its width does not matter. Timing does not stop when the sign of the
        effect is clear, because the reward would stay noisy.
        """
        least, most = map(math.log, RATIO_CLAMP)
        beyond = self.mean - self.half > most or self.mean + self.half < least
        return beyond or self.half < self.width

    @property
    def width(self) -> float:
        """The half-width that is wanted."""
        return max(TIMING.half_width, TIMING.half_width_share * abs(self.mean))


def pairs_needed(effects: Sequence[float]) -> int:
    """Returns how many pairs give the half-width that is wanted, from those of a first stage.

    C. Stein, "A two-sample test for a linear hypothesis whose power is independent of the
    variance", Annals of Mathematical Statistics 16(3), 1945: the spread of a first stage fixes the
    number of all measurements. For normal values the mean does not depend on that spread. A rule
    that looks at each new measurement stops too early, when the spread looks small by chance.
    `two_stage_interval` is the interval that belongs to this number.

    Args:
        effects: Log ratios of the first stage.

    Returns:
        An even number from that of the first stage to the limit of the protocol.
    """
    first, count = interval(effects), len(effects)
    if first.settled:
        return count
    needed = math.ceil(count * (first.half / first.width) ** 2)
    return min(TIMING.max_pairs, needed + needed % 2)


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
