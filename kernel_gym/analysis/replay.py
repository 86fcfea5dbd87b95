"""Recorded runs again: scored under another reward, or evaluated anew and compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_gym.episodes.history import reward_context
from kernel_gym.records import Clock, Evaluation, Outcome
from kernel_gym.rewards import Reward
from kernel_gym.storage.json_lines import StoreError
from kernel_gym.storage.run_store import RunStore, TurnRecord
from kernel_gym.storage.secret import PUBLIC, SECRET, RunSecret

if TYPE_CHECKING:
    from kernel_gym.executors import Executor


def rescore(store: RunStore, reward: Reward) -> list[TurnRecord]:
    """The records of a run under another reward; nothing is evaluated.

    Args:
        store: The run.
        reward: The other reward.

    Returns:
        The records in the run's order, with new rewards and terms.
    """
    rescored = []
    for turns in _by_episode(store.records()).values():
        for number, turn in enumerate(turns):
            context = reward_context(turns[:number])
            if (store.folder / turn.source).is_file():
                context = context.of(store.source(turn))
            result = reward(turn.evaluation, context)
            update = {"reward": result.value, "terms": dict(result.terms)}
            rescored.append(turn.model_copy(update=update))
    return rescored


def write_rescored(
    store: RunStore, records: Iterable[TurnRecord], reward: str, out: Path, overwrite: bool = False
) -> RunStore:
    """Writes rescored records as a run of its own.

    Args:
        store: The run they come from; its sources are copied.
        records: What :func:`rescore` gave.
        reward: The name of the other reward.
        out: The folder of the new run.
        overwrite: Throw away a run that `out` holds.

    Returns:
        The new run.
    """
    config = store.config.model_copy(update={"reward": reward})
    copy = RunStore.start(out, config, overwrite=overwrite, secret=secret_of(store))
    for record in records:
        copy.append(record, store.source(record))
    for end in store.ends():
        copy.end(end.task, end.sample, end.reason)
    copy.finish()
    return copy


@dataclass(frozen=True)
class Replayed:
    """One recorded submission, evaluated again.

    Attributes:
        record: What was recorded.
        evaluation: What was found now.
        differences: The fields that differ.
    """

    record: TurnRecord
    evaluation: Evaluation
    differences: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Whether everything that must agree does."""
        return not self.differences


def replay(store: RunStore, executor: Executor) -> Iterator[Replayed]:
    """Evaluates every recorded submission again, with its recorded seed and the run's secret.

    Where times are modelled every field must agree, bit for bit, but for wall-clock times; where
    they are measured, only what the submission was found to be. Submissions whose record is a fault
    of ours are left out: there is nothing to compare with.

    Args:
        store: The run.
        executor: What evaluates; on the run's device and with its secret.

    Yields:
        One result a submission, as they finish.

    Raises:
        StoreError: A record was drawn with another secret than the executor has.
    """
    from kernel_gym.executors import Request  # which loads PyTorch

    records = [r for r in store.records() if r.evaluation.outcome is not Outcome.INFRA]
    if executor.secret.sha256 != secret_of(store).sha256:
        raise StoreError(f"{store.folder} was drawn with another secret than the executor's")
    requests = (Request(r.task, store.source(r), r.evaluation.seed) for r in records)
    for position, evaluation in executor.results(requests):
        record = records[position]
        yield Replayed(record, evaluation, _differences(record.evaluation, evaluation))


def secret_of(store: RunStore) -> RunSecret:
    """What the records of a run were drawn with: `PUBLIC` where their seeds alone decided.

    Raises:
        StoreError: The run's secret is missing, or is not the one that the records name.
    """
    named = {r.evaluation.secret_sha256 for r in store.records()}
    if named <= {""}:
        return PUBLIC
    secret = store.secret
    if named != {secret.sha256}:
        raise StoreError(f"{store.folder}: {SECRET} is not what the records were drawn with")
    return secret


def _differences(recorded: Evaluation, found: Evaluation) -> tuple[str, ...]:
    if recorded.clock is Clock.MODELLED:
        if recorded.canonical() == found.canonical():
            return ()
        fields = [name for name in type(found).model_fields if name != "wall_seconds"]
    else:
        fields = ["task", "source_sha256", "outcome", "stage", "seed", "secret_sha256"]
    dumps = (recorded.model_dump(mode="json"), found.model_dump(mode="json"))
    return tuple(name for name in fields if repr(dumps[0][name]) != repr(dumps[1][name]))


def _by_episode(records: Iterable[TurnRecord]) -> dict[tuple[str, int], list[TurnRecord]]:
    found: dict[tuple[str, int], list[TurnRecord]] = {}
    for record in records:
        found.setdefault((record.task, record.sample), []).append(record)
    return found
