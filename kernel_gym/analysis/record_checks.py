"""Checks a run folder that somebody else made: every figure must follow from its records.

A run folder is hostile until it passed. What no reading can show is that the verdicts are true:
`kernel-gym replay` shows that.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from kernel_gym.analysis.replay import TIMING_MODEL, rescore, secret_of
from kernel_gym.judge.scores import geometric_speedup
from kernel_gym.records import Clock, Evaluation, Outcome, source_digest
from kernel_gym.rewards import get_reward, reward_names
from kernel_gym.storage.json_lines import StoreError
from kernel_gym.storage.run_records import TurnRecord
from kernel_gym.storage.run_store import CONFIG, ENDS, RESULTS, SESSIONS, SOURCES, SUFFIX, RunStore
from kernel_gym.storage.secret import SECRET
from kernel_gym.tasks.inside import read_inside
from kernel_gym.tasks.workload import Split

MAX_FILE_BYTES = 1 << 28
"""Most bytes of one file of a run; 750 tasks with eight submissions each have about 50 MB."""
MAX_EPISODES = 100_000
"""Most episodes that a run may plan."""
_REQUIRED, _OPTIONAL = (CONFIG, RESULTS), (ENDS, SESSIONS, SECRET)


@dataclass(frozen=True)
class RunFacts:
    """Facts that all records of a run agree on.

    Attributes:
        device: The device that judged.
        clock: Where its times come from.
        protocol: The version of the rules of an evaluation.
        timing_model: The version of the model of times; empty on a GPU.
        secret_sha256: The digest of the secret of the draws; empty if the seed alone decided.
        digest: SHA-256 of all records without their wall-clock times. Two equal runs on the
            simulator have the same one.
    """

    device: str
    clock: Clock
    protocol: str
    timing_model: str
    secret_sha256: str
    digest: str


def checked_run(folder: Path) -> tuple[RunStore, RunFacts]:
    """Reads a run and checks that its figures follow from its records and its sources.

    Each source must have the digest that its record names. Speedups on the simulator must be the
    means of the workloads' ratios, and rewards must be what the named reward gives.

    Args:
        folder: The run folder.

    Returns:
        The run, and what its records agree on.

    Raises:
        StoreError: A file is missing, too long, a link that leads out of the folder or malformed,
            or a figure does not follow.
    """
    _check_files(folder)
    store = RunStore(folder)
    config = store.config
    if len(set(config.tasks)) < len(config.tasks):
        raise StoreError(f"{folder}: {CONFIG} names a task twice")
    if not 0 < len(config.tasks) * config.samples <= MAX_EPISODES:
        raise StoreError(f"{folder}: found no episode, or more than {MAX_EPISODES:,}")
    records = store.records()
    if not records:
        raise StoreError(f"{folder}: the run has no submission")
    for record in records:
        _check_record(store, record)
    _check_rewards(store, records)
    secret = secret_of(store).sha256
    evaluations = [record.evaluation for record in records]
    return store, RunFacts(
        device=_common(store, "device", (e.device for e in evaluations)),
        clock=Clock(_common(store, "clock", (str(e.clock) for e in evaluations))),
        protocol=_common(store, "protocol version", (e.protocol_version for e in evaluations)),
        timing_model=_common(
            store, "timing model", (e.versions.get(TIMING_MODEL, "") for e in _judged(evaluations))
        ),
        secret_sha256=secret,
        digest=_digest(records),
    )


def _check_files(folder: Path) -> None:
    """Reads every file once, within bounds and without leaving the folder."""
    for name in (*_REQUIRED, *_OPTIONAL):
        path = folder / name
        if name in _OPTIONAL and not path.is_symlink() and not path.exists():
            continue
        try:
            read_inside(folder, path, MAX_FILE_BYTES)
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror or error}") from None


def _check_record(store: RunStore, record: TurnRecord) -> None:
    place = f"{store.folder}: {record.task}, sample {record.sample}, turn {record.turn}"
    if not (0 < record.sample <= store.config.samples and 0 < record.turn <= store.config.turns):
        raise StoreError(f"{place}: {CONFIG} plans no such turn")
    path, evaluation = PurePosixPath(record.source), record.evaluation
    if path.is_absolute() or ".." in path.parts or path.parts[:1] != (SOURCES,):
        raise StoreError(f"{place}: its source is not in {SOURCES}/")
    if path.suffix not in SUFFIX.values():  # a page of the submission would act in a browser
        raise StoreError(f"{place}: its source ends in none of {', '.join(SUFFIX.values())}")
    if evaluation.task != record.task:
        raise StoreError(f"{place}: its evaluation is of another task")
    if evaluation.source_sha256 not in _digests(store.source(record)):
        raise StoreError(f"{place}: its source has another digest than its record")
    for times in (evaluation, *evaluation.workloads):
        values = [v for n, v in vars(times).items() if "speedup" in n or n.endswith("_seconds")]
        if not all(0.0 <= v < math.inf for v in values if isinstance(v, float)):
            raise StoreError(f"{place}: found a negative or infinite time or speedup")
    if evaluation.clock is Clock.MODELLED and evaluation.outcome is Outcome.PASSED:
        _check_speedups(place, evaluation)


def _digests(source: str) -> set[str]:
    """Digests of the submission that a file can hold: lone surrogates are escaped in files."""
    unescaped = re.sub(r"\\u(d[89a-f][0-9a-f]{2})", lambda m: chr(int(m[1], 16)), source)
    return {source_digest(source), source_digest(unescaped)}


def _check_speedups(place: str, evaluation: Evaluation) -> None:
    """On the simulator each ratio is a quotient of times, and each speedup a mean of ratios."""
    for result in evaluation.workloads:
        times = result.baseline_seconds, result.candidate_seconds
        if result.speedup is None or None in times:
            continue
        quotient = (times[0] or 0.0) / times[1] if times[1] else math.inf
        if not math.isclose(quotient, result.speedup, rel_tol=1e-9):
            raise StoreError(f"{place}: a speedup is not the quotient of its times")
    stated = {Split.TRAIN: evaluation.speedup, Split.UNSEEN: evaluation.unseen_speedup}
    for split, speedup in stated.items():
        mean = geometric_speedup(evaluation.workloads, split)
        if (mean is None) != (speedup is None) or not math.isclose(
            mean or 1.0, speedup or 1.0, rel_tol=1e-9
        ):
            raise StoreError(f"{place}: its {split} speedup is not the mean of its workloads")


def _check_rewards(store: RunStore, records: list[TurnRecord]) -> None:
    """Computes each reward again. A reward from a file or a module would be foreign code."""
    name = store.config.reward
    if name not in reward_names():
        raise StoreError(f"{store.folder}: reward {name!r} is none of {', '.join(reward_names())}")
    for record, again in zip(records, rescore(store, get_reward(name)), strict=True):
        if not _equal(record.reward, again.reward):
            raise StoreError(
                f"{store.folder}: {record.task}, sample {record.sample}, turn {record.turn}: "
                f"reward {record.reward}, but {name} gives {again.reward}"
            )


def _equal(stated: float | None, computed: float | None) -> bool:
    if stated is None or computed is None:
        return stated is computed
    return math.isclose(stated, computed, rel_tol=1e-9, abs_tol=1e-12)


def _judged(evaluations: Iterable[Evaluation]) -> list[Evaluation]:
    """Evaluations that a device timed: those that failed earlier name no model of times."""
    return [e for e in evaluations if TIMING_MODEL in e.versions]


def _common(store: RunStore, name: str, values: Iterable[str]) -> str:
    different = sorted(set(values))
    if len(different) > 1:
        raise StoreError(f"{store.folder}: its records have more than one {name}")
    return different[0] if different else ""


def _digest(records: Iterable[TurnRecord]) -> str:
    lines = (f"{r.sample} {r.turn} {r.evaluation.canonical()}\n" for r in records)
    return hashlib.sha256("".join(lines).encode()).hexdigest()
