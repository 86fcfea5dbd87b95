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
        width = max(TIMING.half_width, TIMING.half_width_share * abs(self.mean))
        return beyond or self.half < width


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
