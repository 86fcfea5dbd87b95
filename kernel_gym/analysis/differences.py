"""Differences of two runs beside their policies, from which a change may come."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kernel_gym.records import Evaluation
from kernel_gym.storage.run_store import RunStore

NONE = "none"
DRAWS = "data and unseen shapes are drawn differently, so changes contain the luck of the draws"
TURNS = "the attempts of one run have more turns"
REWARD = "rewards are not compared"
PROTOCOL = "the rules of evaluation differ"
VERSION = "verdicts and times may differ for the same source"
DIGITS = 12
"""Digits of the SHA-256 of a secret that are shown."""


@dataclass(frozen=True)
class Difference:
    """A difference of two runs that may change their metrics.

    Attributes:
        name: What differs, such as `secret` or `triton`.
        before: Its value in the first run.
        after: Its value in the second run.
        effect: What it means for the comparison.
    """

    name: str
    before: str
    after: str
    effect: str


def differences(first: RunStore, other: RunStore) -> tuple[Difference, ...]:
    """Returns what may change the metrics of two runs beside their policies.

    Args:
        first: The run to compare with.
        other: The run to compare.
    """
    sides = [_facts(store) for store in (first, other)]
    names = dict.fromkeys(name for side in sides for name in side)
    rows = []
    for name in names:
        (before, effect), (after, other_effect) = (side.get(name, (NONE, "")) for side in sides)
        if before != after:
            rows.append(Difference(name, before, after, effect or other_effect))
    if first.config.seed is None and other.config.seed is None and _seeds(first) != _seeds(other):
        rows.append(Difference("seed", NONE, NONE, DRAWS))
    return tuple(rows)


def _seeds(store: RunStore) -> set[int | None]:
    """The seeds that a run without a seed has drawn, of the records that have one."""
    return {r.evaluation.seed for r in store.records()} - {None}


def _facts(store: RunStore) -> dict[str, tuple[str, str]]:
    """The value of each fact of a run, and what another value would mean."""
    evaluations = [record.evaluation for record in store.records()]
    config = store.config
    facts = {
        "secret": (_values(e.secret_sha256[:DIGITS] for e in evaluations), DRAWS),
        "seed": (NONE if config.seed is None else str(config.seed), DRAWS),
        "turns": (str(config.turns), TURNS),
        "reward": (config.reward, REWARD),
        "protocol": (_values(e.protocol_version for e in evaluations), PROTOCOL),
    }
    return facts | {name: (text, VERSION) for name, text in _versions(evaluations).items()}


def _versions(evaluations: Iterable[Evaluation]) -> dict[str, str]:
    values: dict[str, list[str]] = {}
    for evaluation in evaluations:
        for name, version in evaluation.versions.items():
            values.setdefault(name, []).append(version)
    return {name: _values(versions) for name, versions in values.items()}


def _values(values: Iterable[str]) -> str:
    """All values, each once."""
    return ", ".join(sorted({value or NONE for value in values})) or NONE
