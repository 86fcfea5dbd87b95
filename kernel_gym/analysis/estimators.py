"""Statistics of repeated attempts: pass@k, best@k, bootstrap intervals, explained deviance.

Nothing here knows what a kernel is. `docs/metrics.md` gives every formula with its source.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

RESAMPLED = 2000
LEVEL = 0.95
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A value and the ends of its 95 % interval; None where there is nothing to go by."""

    value: float | None
    low: float | None = None
    high: float | None = None


def pass_at_k(n: int, correct: int, k: int) -> float:
    """Chance that one of k attempts is right, without bias (Chen et al. 2021, eq. 1).

    Args:
        n: Attempts made, at least k.
        correct: How many of them were right.
        k: Attempts allowed.

    Returns:
        `1 - C(n - correct, k) / C(n, k)`.

    Example:
        >>> pass_at_k(4, 2, 1), pass_at_k(4, 2, 3)
        (0.5, 1.0)
    """
    _check(n, k)
    return 1.0 - math.comb(n - correct, k) / math.comb(n, k)


def best_at_k(values: Sequence[float], k: int) -> float:
    """Expected best of k attempts, without bias: the mean of the maximum over all subsets of k.

    Args:
        values: What each attempt was worth, at least k of them.
        k: Attempts allowed.

    Returns:
        The mean, from order statistics: the i-th smallest is the largest of `C(i - 1, k - 1)`
        subsets. With values of 0 and 1 it is pass@k.

    Example:
        >>> best_at_k([1.0, 2.0, 3.0], 2)
        2.6666666666666665
    """
    n = len(values)
    _check(n, k)
    weights = (math.comb(i, k - 1) for i in range(n))
    total = math.fsum(w * v for w, v in zip(weights, sorted(values), strict=True))
    return total / math.comb(n, k)


def _check(n: int, k: int) -> None:
    if not 1 <= k <= n:
        raise ValueError(f"k is {k}, expected 1 to the number of attempts, {n}")


def ratio(
    sums: Sequence[float],
    counts: Sequence[float],
    link: Callable[[Floats], Floats] = np.positive,
    seed: int = 0,
) -> Estimate:
    """A mean over attempts that are grouped by task, with its interval.

    The interval is a percentile bootstrap over tasks: attempts at one task are alike, so tasks are
    what is drawn anew, each with all its attempts (cluster bootstrap; Davison and Hinkley 1997,
    section 3.8).

    Args:
        sums: Of each task, the sum over its attempts.
        counts: Of each task, how many those are; 0 where none counts.
        link: What is done to the mean, such as `numpy.exp` for a geometric mean.
        seed: Of the resampling.

    Returns:
        `link(sum of sums / sum of counts)`; no interval for fewer than two tasks that count.
    """
    top, bottom = np.asarray(sums, float), np.asarray(counts, float)
    if bottom.sum() == 0:
        return Estimate(None)
    value = float(link(np.asarray(top.sum() / bottom.sum())))
    if np.count_nonzero(bottom) < 2:
        return Estimate(value)
    drawn = draws(len(top), seed)
    tops, bottoms = top[drawn].sum(axis=1), bottom[drawn].sum(axis=1)
    resampled = link(tops[bottoms > 0] / bottoms[bottoms > 0])
    return Estimate(value, *interval(resampled))


def paired(before: Sequence[float], after: Sequence[float], seed: int = 0) -> Estimate:
    """The mean of after less before over pairs, with its interval.

    A percentile bootstrap that draws pairs anew, by scipy (Efron and Tibshirani 1993, chapter 8).

    Args:
        before: One value a pair.
        after: The other.
        seed: Of the resampling.

    Returns:
        The mean; no interval for fewer than two pairs.
    """
    from scipy import stats

    differences = np.asarray(after, float) - np.asarray(before, float)
    value = float(differences.mean())
    if len(differences) < 2:
        return Estimate(value)
    found = stats.bootstrap(
        (differences,),
        np.mean,
        n_resamples=RESAMPLED,
        confidence_level=LEVEL,
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Estimate(value, float(found.low), float(found.high))


def draws(tasks: int, seed: int = 0) -> NDArray[np.int64]:
    """Tasks drawn with replacement, (2000, tasks); the same for the same seed."""
    return np.random.default_rng(seed).integers(tasks, size=(RESAMPLED, tasks))


def interval(resampled: Floats) -> tuple[float, float]:
    """The ends of the 95 % percentile interval."""
    low, high = np.quantile(resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


@dataclass(frozen=True)
class Deviance:
    """How much of the outcomes a factor explains.

    Attributes:
        explained: Share of the null deviance.
        expected: The share that the factor would explain if it meant nothing, by permutation.
        degrees: Degrees of freedom of the factor.
        p_value: Chance of a share as large if the factor meant nothing, by permutation.
    """

    explained: float
    expected: float
    degrees: int
    p_value: float


def explained_deviance(
    groups: Sequence[str], passed: Sequence[float], tried: Sequence[float], seed: int = 0
) -> Deviance | None:
    """`1 - D_model / D_null` of a binomial GLM with one categorical factor, and what chance gives.

    The model is fitted by statsmodels, each attempt an observation. The factor belongs to tasks, so
    the permutation test moves whole tasks between its levels.

    Args:
        groups: Of each task, its level of the factor.
        passed: Of each task, the attempts that were right.
        tried: Of each task, all attempts.
        seed: Of the permutations.

    Returns:
        The shares; None where the factor has one level only, or all attempts ended alike.
    """
    levels, index = np.unique(np.asarray(groups), return_inverse=True)
    right, all_ = np.asarray(passed, float), np.asarray(tried, float)
    if len(levels) < 2 or right.sum() in (0.0, all_.sum()):
        return None
    model = _glm(index, right, all_)
    found = 1 - model.deviance / model.null_deviance

    def share(index: NDArray[np.int64]) -> float:
        """The same with other levels, whose fit is the mean of each."""
        passes, trials = (np.bincount(index, each, len(levels)) for each in (right, all_))
        means = (passes / np.maximum(trials, 1))[index]
        return 1 - _deviance(model.family, right, all_, means) / model.null_deviance

    generator = np.random.default_rng(seed)
    chance = np.array([share(generator.permutation(index)) for _ in range(RESAMPLED)])
    as_large = int(np.count_nonzero(chance >= found - 1e-6))
    p_value = (1 + as_large) / (1 + RESAMPLED)
    return Deviance(float(found), float(chance.mean()), int(model.df_model), p_value)


def _glm(index: NDArray[np.int64], right: Floats, tried: Floats) -> Any:
    """The fitted model, an attempt an observation: successes and failures of tasks, weighted."""
    import warnings

    import statsmodels.api as sm

    design = np.eye(index.max() + 1)[np.concatenate([index, index])]
    outcome, weights = _attempts(right, tried)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a level of which all are right has no finite logit
        return sm.GLM(outcome, design, sm.families.Binomial(), freq_weights=weights).fit()


def _deviance(family: Any, right: Floats, tried: Floats, means: Floats) -> float:
    outcome, weights = _attempts(right, tried)
    return float(family.deviance(outcome, np.concatenate([means, means]), freq_weights=weights))


def _attempts(right: Floats, tried: Floats) -> tuple[Floats, Floats]:
    """Outcomes, 1 for each task and then 0, and how many attempts each stands for."""
    ones = np.ones(len(right))
    return np.concatenate([ones, 0 * ones]), np.concatenate([right, tried - right])
