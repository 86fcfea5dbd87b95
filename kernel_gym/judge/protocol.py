"""The numbers of the evaluation protocol. docs/protocol.md states its rules.

A change of a number needs a page in docs/decisions.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gym.records import RATIO_CLAMP as RATIO_CLAMP

PROTOCOL_VERSION = "5"

MAX_SOURCE_BYTES = 256 * 1024
"""Longer sources are rejected."""


@dataclass(frozen=True)
class Tolerance:
    """How far values may be from the oracle (rule 7)."""

    max_error: float = 4.0
    """Limit for the largest error of a row, in yardsticks."""
    rms_error: float = 2.5
    """Limit for the root-mean-square error of a row, in yardsticks."""
    tail_share: float = 1e-3
    """The share of rows whose root-mean-square error may reach `max_error` instead. The more rows
    there are, the longer is the tail: honest fp16 attention has a ratio of 2.2 in one row of 1000,
    and more where values cancel."""
    fp32_roundings: int = 8
    """Roundings allowed for fp32 and fp64 results. The order of a sum alone changes the result by
    several roundings, and the reference's order may be a lucky one. Honest kernels needed up to
    2.1 of these units."""
    cancelled_rows: float = 3.0
    """Limit for the relative error of a row whose values cancel, in usual relative errors."""
    uniform_rms: float = 0.29
    """Root mean square of a rounding error that is uniform within one unit: 1/sqrt(12)."""
    row_block: int = 4096
    """The most outputs that share one tolerance."""


@dataclass(frozen=True)
class Plausibility:
    """Limits beyond which a result is a hack or a time is not trusted."""

    physics_share: float = 0.95
    """A time below this share of the roofline is impossible (rule 20)."""
    noop_share: float = 0.5
    """The largest share of the non-zero answer that may be right if no kernel ran (rule 10)."""
    library_share: float = 1.1
    """In imported tasks: the most time in operators of PyTorch that compute, in times of what the
    suite's own code spends in them on the same data (rule 10)."""
    repeat_factor: float = 1.25
    """The largest ratio between the reported times of two calls on the same data."""
    audit_speedup: float = 10.0
    """Larger speedups get a label, because a person should look at them (rule 20)."""


@dataclass(frozen=True)
class Retries:
    """How often an evaluation is tried again after a failure of the machine (rule 27)."""

    infra: int = 2
    """Retries before the outcome is `infra`."""
    device_lost: int = 1
    """Retries after a lost device, because another process may have lost it. A simulated GPU has no
    other users: if it is lost in a call of the candidate, the candidate fails at once."""
    seconds: float = 120.0
    """No retry after a failure of the machine starts later than this after the first try started.
    After a lost device there is always one, as it decides who is to blame."""


# Timing on a GPU (rules 11-21), calibrated on an H100 and an H200: docs/decisions, 0001 to 0006.


@dataclass(frozen=True)
class PairedTiming:
    """How calls of baseline and candidate are timed in turn (rules 12, 14-17)."""

    min_pairs: int = 8
    """The pairs of calls that decide how many are needed. Two of them are trimmed."""
    max_pairs: int = 200
    """The most pairs."""
    max_seconds: float = 5.0
    """No new pair starts after this time."""
    half_width: float = 0.015
    """The half-width of intervals of log(baseline / candidate) that is wanted in the mean of the
    workloads of a split."""
    half_width_share: float = 0.02
    """A half-width of this share of the effect is enough too: 2.8 % at four times the baseline."""
    alone_every: int = 3
    """After so many pairs the baseline is called twice in its own launcher too."""
    launcher_seconds: float = 0.3e-6
    """Most seconds that two launchers differ by. Of seven on an H200 two differed by 0.19 us."""
    beside_share: float = 0.03
    """If the baseline is slower beside the candidate by a larger share, both get new launchers; if
    it still is, the speedup is lowered by the share."""
    max_beside_share: float = 0.1
    """The largest share that is subtracted. Beyond it the times are void."""
    trimmed_share: float = 0.2
    """The share of effects that is cut off on each side before the mean (rule 14)."""
    confidence: float = 0.95
    """The confidence of the interval."""
    verified_share: float = 0.1
    """The share of the candidate's calls that are verified; at least one (rule 17)."""


@dataclass(frozen=True)
class NoiseFloor:
    """How the noise of a GPU is measured: a kernel is compared with itself (rule 18)."""

    limit: float = 0.03
    """No candidate is scored on a GPU with a larger noise floor."""
    evaluations: int = 50
    """Evaluations between two measurements."""
    valid_seconds: float = 3600.0
    """A measurement is not used after this time."""
    measurements: int = 3
    """Measurements until one is within the limit, as something may have disturbed the others."""
    workloads: int = 3
    """Train workloads of a measurement."""
    repeats: int = 4
    """Comparisons for each workload."""


TOLERANCE = Tolerance()
PLAUSIBILITY = Plausibility()
RETRIES = Retries()
TIMING = PairedTiming()
NOISE = NoiseFloor()
