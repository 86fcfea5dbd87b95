"""Statistics of repeated attempts: pass@k, best@k, bootstrap intervals, explained deviance.

Nothing here depends on kernels. `docs/metrics.md` gives every formula with its source.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RESAMPLED = 2000
"""Number of bootstrap resamples and of permutations."""
LEVEL = 0.95
"""Confidence level of intervals."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A value and the ends of its 95 % interval; None if there is not enough data."""

    value: float | None
    low: float | None = None
    high: float | None = None


def pass_at_k(n: int, correct: int, k: int) -> float:
    """The unbiased probability that one of k attempts is correct (Chen et al. 2021, eq. 1).

    Args:
        n: Number of attempts made, at least k.
        correct: Number of correct attempts.
        k: Number of attempts allowed.

    Returns:
        `1 - C(n - correct, k) / C(n, k)`.

    Example:
        >>> pass_at_k(4, 2, 1), pass_at_k(4, 2, 3)
        (0.5, 1.0)
    """
    _check(n, k)
    return 1.0 - math.comb(n - correct, k) / math.comb(n, k)


def best_at_k(values: Sequence[float], k: int) -> float:
    """The unbiased expected best of k attempts: the mean maximum over all subsets of size k.

    Args:
        values: The value of each attempt; at least k of them.
        k: Number of attempts allowed.

    Returns:
        The mean, by order statistics: the i-th smallest value is the largest of `C(i - 1, k - 1)`
        subsets. For values of 0 and 1 it equals pass@k.

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

    The interval is a percentile bootstrap over tasks. Attempts at one task are correlated, so whole
    tasks are resampled, each with all its attempts (cluster bootstrap; Davison and Hinkley 1997,
    section 3.8).

    Args:
        sums: The sum over the attempts of each task.
        counts: The number of attempts of each task that count; may be 0.
        link: Applied to the mean, such as `numpy.exp` for a geometric mean.
        seed: Seed of the resampling.

    Returns:
        `link(sum of sums / sum of counts)`; without an interval if fewer than two tasks count.
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
    """The mean of `after - before` over pairs, with its interval.

    The interval is a percentile bootstrap over pairs, computed by scipy (Efron and Tibshirani 1993,
    chapter 8).

    Args:
        before: The first value of each pair.
        after: The second value of each pair.
        seed: Seed of the resampling.

    Returns:
        The mean; without an interval for fewer than two pairs.
    """
    from scipy import stats

    differences = np.asarray(after, float) - np.asarray(before, float)
    value = float(differences.mean())
    if len(differences) < 2:
        return Estimate(value)
    bounds = stats.bootstrap(
        (differences,),
        np.mean,
        n_resamples=RESAMPLED,
        confidence_level=LEVEL,
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Estimate(value, float(bounds.low), float(bounds.high))


def sign_flip(before: Sequence[float], after: Sequence[float], seed: int = 0) -> float:
    """The probability of a mean difference at least this far from 0, if neither side is better.

    Then each pair could as well have the opposite difference. Up to 13 pairs all assignments of
    signs are counted, beyond that 9999 random ones; computed by scipy (Fisher 1935, *The Design of
    Experiments*, section 21; Ernst 2004, *Permutation Methods*, section 3).

    Args:
        before: The first value of each pair.
        after: The second value of each pair.
        seed: Seed of the random assignments.

    Returns:
        The two-sided p-value; 1 for a single pair, as both signs are equally far.

    Example:
        >>> sign_flip([0.0, 0.0, 0.0, 0.0], [1.0, 2.0, 3.0, 4.0])
        0.125
    """
    from scipy import stats

    differences = np.asarray(after, float) - np.asarray(before, float)
    if len(differences) < 2:
        return 1.0
    test = stats.permutation_test(
        (differences,),
        np.mean,
        permutation_type="samples",
        n_resamples=9999,
        rng=np.random.default_rng(seed),
    )
    return float(test.pvalue)


def draws(tasks: int, seed: int = 0) -> NDArray[np.int64]:
    """Indices of tasks drawn with replacement, shape (2000, tasks), from a seed."""
    return np.random.default_rng(seed).integers(tasks, size=(RESAMPLED, tasks))


def interval(resampled: Floats) -> tuple[float, float]:
    """The ends of the 95 % percentile interval."""
    low, high = np.quantile(resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


@dataclass(frozen=True)
class Deviance:
    """How much of the outcomes a factor explains.

    Attributes:
        explained: Share of the null deviance that the factor explains.
        expected: The mean share that a factor without effect explains, by permutation.
        degrees: Degrees of freedom of the factor.
        p_value: Probability of at least this share for a factor without effect, by permutation.
    """

    explained: float
    expected: float
    degrees: int
    p_value: float


def explained_deviance(
    groups: Sequence[str],
    passed: Sequence[float],
    tried: Sequence[float],
    seed: int = 0,
    blocks: Sequence[int] | None = None,
) -> Deviance | None:
    """`1 - D_model / D_null` of a binomial GLM with one categorical factor, and a permutation test.

    With one factor the fit is the mean of each level. The factor is a property of tasks,
    so the test permutes its levels between whole tasks.

    Args:
        groups: The level of the factor of each task.
        passed: The number of correct attempts of each task.
        tried: The number of attempts of each task.
        seed: Seed of the permutations.
        blocks: A number for each task: levels are permuted among tasks with the same one.

    Returns:
        The shares; None if the factor has only one level, or all attempts have the same result.
    """
    levels, index = np.unique(np.asarray(groups), return_inverse=True)
    right, all_ = np.asarray(passed, float), np.asarray(tried, float)
    if len(levels) < 2 or right.sum() in (0.0, all_.sum()):
        return None
    null = _deviance(right.sum(), all_.sum())

    def share(index: NDArray[np.int64]) -> float:
        """The explained share for other levels of the tasks."""
        passes, trials = (
            np.bincount(index, each, len(levels)).astype(float) for each in (right, all_)
        )
        return 1 - _deviance(passes, trials) / null

    explained = share(index)
    generator = np.random.default_rng(seed)
    within = None if blocks is None else np.asarray(blocks)

    def permuted() -> NDArray[np.int64]:
        """The levels in another order."""
        if within is None:
            return generator.permutation(index)
        other = np.empty_like(index)
        order = np.lexsort((generator.random(len(index)), within))
        other[np.argsort(within, kind="stable")] = index[order]
        return other

    chance = np.array([share(permuted()) for _ in range(RESAMPLED)])
    as_large = int(np.count_nonzero(chance >= explained - 1e-6))
    p_value = (1 + as_large) / (1 + RESAMPLED)
    return Deviance(explained, float(chance.mean()), len(levels) - 1, p_value)


def _deviance(right: Floats | float, tried: Floats | float) -> float:
    """The deviance of attempts from the mean of their level, summed over levels."""
    from scipy.special import xlogy

    wrong = np.asarray(tried) - right
    ratios = xlogy(right, right / np.asarray(tried)) + xlogy(wrong, wrong / np.asarray(tried))
    return float(-2 * np.sum(ratios))
