"""Scores a recorded run with another reward, or evaluates it again and compares."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_gym.episodes.history import reward_context
from kernel_gym.records import Clock, Evaluation, Outcome
from kernel_gym.rewards import Reward
from kernel_gym.sim.constants import SAME_TIMES
from kernel_gym.storage.json_lines import StoreError
from kernel_gym.storage.run_records import TurnRecord
from kernel_gym.storage.run_store import RunStore
from kernel_gym.storage.secret import PUBLIC, SECRET, RunSecret

if TYPE_CHECKING:
    from kernel_gym.devices.plan_store import NoPlanError
    from kernel_gym.executors import Executor

TIMING_MODEL = "timing_model"
"""The name, among the versions of a record, of the model that computed its times."""


def rescore(store: RunStore, reward: Reward) -> list[TurnRecord]:
    """The records of a run with another reward; nothing is evaluated.

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
    """Writes rescored records as a new run.

    Args:
        store: The original run; its sources are copied.
        records: The records that :func:`rescore` returned.
        reward: The name of the other reward.
        out: The folder of the new run.
        overwrite: Delete the run in `out`, if there is one.

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
        record: The recorded submission.
        evaluation: The new evaluation.
        differences: The names of the fields that differ.
    """

    record: TurnRecord
    evaluation: Evaluation
    differences: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Whether all fields that must agree do."""
        return not self.differences

    @property
    def clocks(self) -> tuple[str, str] | None:
        """The recorded and the present version of the timing model, if their times differ."""
        recorded = self.record.evaluation.versions.get(TIMING_MODEL, "before 1")
        present = self.evaluation.versions.get(TIMING_MODEL)
        if not present or recorded == present:
            return None
        from kernel_gym.devices import describe

        equal = SAME_TIMES.get(describe(self.evaluation.device).arch, frozenset())
        return None if {recorded, present} <= equal else (recorded, present)


def replay(
    store: RunStore, executor: Executor, tasks: Collection[str] | None = None
) -> Iterator[Replayed]:
    """Evaluates every recorded submission again, with its recorded seed and the run's secret.

    If times are modelled, every field except wall-clock times must agree bit for bit. If times are
    measured, only the verdict must agree. Submissions on which the machine failed are left out.

    Args:
        store: The run.
        executor: Evaluates submissions, on the run's device and with its secret.
        tasks: The tasks whose submissions are evaluated; by default all.

    Yields:
        One result for each submission, in order of completion.

    Raises:
        StoreError: The executor has another secret than the run.
    """
    from kernel_gym.executors import EvaluationRequest  # which loads PyTorch

    records = _to_repeat(store, tasks)
    if executor.secret.sha256 != secret_of(store).sha256:
        raise StoreError(f"{store.folder} was drawn with another secret than the executor's")
    requests = (EvaluationRequest(r.task, store.source(r), r.evaluation.seed) for r in records)
    for position, evaluation in executor.results(requests):
        record = records[position]
        yield Replayed(record, evaluation, _differences(record.evaluation, evaluation))


def judge_again(
    store: RunStore, tasks: Collection[str] | None = None
) -> Iterator[Replayed | NoPlanError]:
    """Judges every recorded submission again from its stored launch plans.

    No code of a submission runs. Submissions on which the machine failed are left out.

    Args:
        store: The run.
        tasks: The tasks whose submissions are judged; by default all.

    Yields:
        One result for each submission, or why it cannot be judged from plans.
    """
    from kernel_gym.devices.plan_store import NoPlanError
    from kernel_gym.evaluator import Evaluator
    from kernel_gym.tasks.registry import get_task

    records = _to_repeat(store, tasks)
    with Evaluator(store.config.device, secret=secret_of(store), plans=store.plans) as evaluator:
        for record in records:
            task, seed = get_task(record.task), record.evaluation.seed
            if seed is None:
                yield NoPlanError("the record names no seed")
                continue
            try:
                evaluation = evaluator.judge_again(task, store.source(record), seed)
            except NoPlanError as error:
                yield error
                continue
            yield Replayed(record, evaluation, _differences(record.evaluation, evaluation))


def _to_repeat(store: RunStore, tasks: Collection[str] | None) -> list[TurnRecord]:
    """Returns the records of some tasks, without those on which the machine failed."""
    judged = (r for r in store.records() if r.evaluation.outcome is not Outcome.INFRA)
    return [record for record in judged if tasks is None or record.task in tasks]


def secret_of(store: RunStore) -> RunSecret:
    """The secret with which the records of a run were drawn; `PUBLIC` if they used none.

    Raises:
        StoreError: The run's secret is missing, or differs from the one that the records name.
    """
    named = {r.evaluation.secret_sha256 for r in store.records()}
    if named <= {""}:
        return PUBLIC
    secret = store.secret
    if named != {secret.sha256}:
        raise StoreError(f"{store.folder}: {SECRET} is not what the records were drawn with")
    return secret


def _differences(recorded: Evaluation, repeated: Evaluation) -> tuple[str, ...]:
    if not recorded.problem_sha256:  # a record of the time before it was kept
        repeated = repeated.model_copy(update={"problem_sha256": ""})
    if recorded.clock is Clock.MODELLED:
        if recorded.canonical() == repeated.canonical():
            return ()
        fields = [name for name in type(repeated).model_fields if name != "wall_seconds"]
    else:
        fields = [
            "task",
            "source_sha256",
            "problem_sha256",
            "outcome",
            "stage",
            "seed",
            "secret_sha256",
        ]
    dumps = (recorded.model_dump(mode="json"), repeated.model_dump(mode="json"))
    return tuple(name for name in fields if repr(dumps[0][name]) != repr(dumps[1][name]))


def _by_episode(records: Iterable[TurnRecord]) -> dict[tuple[str, int], list[TurnRecord]]:
    episodes: dict[tuple[str, int], list[TurnRecord]] = {}
    for record in records:
        episodes.setdefault((record.task, record.sample), []).append(record)
    return episodes
