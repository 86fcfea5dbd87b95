"""Rows of datasets back to submissions, and their evaluation."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kernel_gym.episodes.reply import extract_source
from kernel_gym.exchange.files import Row
from kernel_gym.exchange.replies import record_sha256
from kernel_gym.records import Clock, Evaluation
from kernel_gym.storage.json_lines import StoreError
from kernel_gym.tasks import Task, get_task

if TYPE_CHECKING:
    from kernel_gym.executors import Executor


@dataclass(frozen=True)
class Stored:
    """A submission of a row.

    Attributes:
        task: The task id.
        source: The submission.
        evidence: What its first evaluation recorded; empty in rows of other origin.
    """

    task: str
    source: str
    evidence: Row

    def differs(self, evaluation: Evaluation) -> str:
        """Names the differences between a new evaluation and the evidence; "" if there are none."""
        known = self.evidence
        if not known:
            return ""
        if str(evaluation.outcome) != known["outcome"]:
            return f"outcome {known['outcome']} became {evaluation.outcome}"
        modelled = evaluation.clock is Clock.MODELLED
        if modelled and record_sha256(evaluation) != known["record_sha256"]:
            return "the record has another hash"
        return ""


def submissions(rows: Sequence[Row]) -> list[Stored]:
    """The submissions of rows in the formats `messages`, `verl`, `preferences` and `apex`.

    A row of preferences has two. The task is in the column `task`, in verl's `reward_model` or in
    Apex's `task_id`.

    Raises:
        StoreError: A row lacks a column; the message names the row and the columns it has.
        UnknownName: A task is unknown; the message has near matches.
    """
    return [one for number, row in enumerate(rows, start=1) for one in _of(number, row)]


def judged(
    stored: Sequence[Stored], executor: Executor
) -> Iterator[tuple[Stored, Evaluation, str]]:
    """Evaluates submissions; those with evidence with their recorded seed.

    Args:
        stored: The submissions.
        executor: Evaluates them. For rows with evidence it must have the secret of their run.

    Yields:
        The submission, its new evaluation and what differs, in order of completion.

    Raises:
        StoreError: The evidence names another secret than the executor's.
    """
    from kernel_gym.executors import EvaluationRequest

    own = executor.secret.sha256
    for one in stored:
        named = one.evidence.get("secret_sha256", own)
        if named != own:
            raise StoreError(f"a row was drawn with the secret {named[:12]}..., not {own[:12]}...")
    requests = [
        EvaluationRequest(one.task, one.source, int(one.evidence["seed"]) if one.evidence else None)
        for one in stored
    ]
    for position, evaluation in executor.results(requests):
        one = stored[position]
        yield one, evaluation, one.differs(evaluation)


def _of(number: int, row: Row) -> Iterator[Stored]:
    if "chosen" in row:
        for side in ("chosen", "rejected"):
            text = _last(number, row, row.get(side))
            yield _stored(number, row, row.get("task"), text, row.get(f"evidence_{side}"))
        return
    if "messages" in row:
        text = _last(number, row, row["messages"])
        yield _stored(number, row, row.get("task"), text, row.get("evidence"))
        return
    if "task_id" in row:
        yield _stored(number, row, row["task_id"], row.get("response"), row.get("evidence"))
        return
    extra = row.get("extra_info") or {}
    task = row.get("task") or (row.get("reward_model") or {}).get("ground_truth")
    yield _stored(number, row, task, extra.get("response"), extra.get("evidence"))


def _stored(number: int, row: Row, task: Any, text: Any, evidence: Any) -> Stored:
    if not isinstance(task, str):
        raise StoreError(f"row {number}: found no task in {sorted(row)}, expected a column 'task'")
    if not isinstance(text, str):
        raise StoreError(f"row {number}: found no reply in {sorted(row)}")
    return Stored(task, _source(number, text, get_task(task), evidence or {}), evidence or {})


def _source(number: int, text: str, task: Task, evidence: Row) -> str:
    """The submission in a reply; with evidence the one that was evaluated, to the byte."""
    source = extract_source(text, task)
    if not evidence:
        return source
    for candidate in (source, source.removesuffix("\n"), text):
        if hashlib.sha256(candidate.encode()).hexdigest() == evidence.get("source_sha256"):
            return candidate
    raise StoreError(f"row {number}: its source is not the one that its evidence is about")


def _last(number: int, row: Row, messages: Any) -> Any:
    """The text of the last message if it is the model's."""
    if isinstance(messages, str):
        return messages
    try:
        last = messages[-1]
        return last["content"] if last["role"] == "assistant" else None
    except (TypeError, KeyError, IndexError):
        raise StoreError(f"row {number}: found no chat in {sorted(row)}") from None
