"""Rows of datasets back to submissions and tasks, and the evaluation of submissions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from kernel_gym.episodes.episode import ChatMessage
from kernel_gym.episodes.reply import extract_source
from kernel_gym.exchange.files import Row
from kernel_gym.exchange.replies import record_sha256
from kernel_gym.records import Clock, Evaluation, source_digest
from kernel_gym.storage.json_lines import StoreError, first_line
from kernel_gym.storage.run_records import ReplyTokens
from kernel_gym.tasks import Task, get_task

if TYPE_CHECKING:
    from kernel_gym.executors import Executor

_SEED = re.compile(r"[0-9]{1,19}")  # 63 bits


@dataclass(frozen=True)
class Stored:
    """A submission of a row.

    Attributes:
        task: The task id.
        source: The submission.
        evidence: What its first evaluation recorded; empty in rows of other origin.
        messages: The chat that it answered, if the row has one.
        reward: Its reward, if the row has one.
        tokens: Its token ids and their log-probabilities, if the row has them.
    """

    task: str
    source: str
    evidence: Mapping[str, str]
    messages: tuple[ChatMessage, ...] = ()
    reward: float | None = None
    tokens: ReplyTokens | None = None

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

    The rollouts that verl (`trainer.rollout_data_dir`) and SkyRL (`dump_eval_results`) write are
    read too. A row of preferences has two submissions. The task is in the column `task`, in verl's
    `reward_model` or `gts`, in SkyRL's `env_extras`, or in Apex's `task_id`.

    Raises:
        StoreError: A row lacks a column; the message names the row and the columns it has.
        UnknownName: A task is unknown; the message has near matches.
    """
    return [stored for number, row in enumerate(rows, start=1) for stored in _of(number, row)]


def is_prompt(row: Row) -> bool:
    """Whether a row has a prompt and no reply."""
    messages = row.get("messages")
    if isinstance(messages, list) and messages:
        return isinstance(messages[-1], dict) and messages[-1].get("role") != "assistant"
    if "response" in row or "chosen" in row:
        return False
    extra = row.get("extra_info")
    return ("prompt" in row or "code" in row) and not (
        isinstance(extra, dict) and "response" in extra
    )


def tasks_of(rows: Sequence[Row]) -> list[str]:
    """The tasks of rows with prompts, each once, in order.

    Raises:
        StoreError: A row names no task; the message names the row and the columns it has.
        UnknownName: A task is unknown; the message has near matches.
    """
    names = []
    for number, row in enumerate(rows, start=1):
        name = _task(number, row)
        if name is None and "code" in row:
            raise StoreError(
                f"row {number}: found a module without a task; write its column 'code' to a file, "
                "and make a task of it with `kernel-gym new FILE`"
            )
        names.append(get_task(_text(number, row, name, "task")).id)
    return list(dict.fromkeys(names))


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

    secret = executor.secret.sha256
    for row in stored:
        named = row.evidence.get("secret_sha256", secret)
        if named != secret:
            text = f"a row was drawn with the secret {named[:12]}..., not {secret[:12]}..."
            raise StoreError(text)
    requests = [
        EvaluationRequest(row.task, row.source, int(row.evidence["seed"]) if row.evidence else None)
        for row in stored
    ]
    for position, evaluation in executor.results(requests):
        row = stored[position]
        yield row, evaluation, row.differs(evaluation)


def _of(number: int, row: Row) -> Iterator[Stored]:
    task = _task(number, row)
    if "chosen" in row:
        for side in ("chosen", "rejected"):
            text = _last(number, row, row.get(side))
            yield _stored(number, row, task, text, row.get(f"evidence_{side}"))
        return
    extra = _part(number, row, "extra_info")
    evidence = row.get("evidence", extra.get("evidence"))
    if "messages" in row:
        text, chat = _last(number, row, row["messages"]), row["messages"]
        chat = chat[:-1] if isinstance(chat, list) else chat
    else:
        texts = (row.get("response"), extra.get("response"))
        rollouts = (row.get("output"), row.get("output_response"))
        text = next((text for text in (*texts, *rollouts) if text is not None), None)
        chat = row.get("prompt")
    stored = _stored(number, row, task, text, evidence)
    reward: Any = row.get("reward")
    yield replace(
        stored,
        messages=_chat(chat),
        reward=float(reward) if type(reward) in (int, float) else None,
        tokens=_tokens(number, row),
    )


def _chat(messages: object) -> tuple[ChatMessage, ...]:
    """The messages of a chat; none if the value is no chat."""
    if not isinstance(messages, list):
        return ()
    parts = [(m.get("role"), m.get("content")) for m in messages if isinstance(m, dict)]
    return tuple(
        ChatMessage(role=role, content=content)
        for role, content in parts
        if isinstance(role, str) and isinstance(content, str)
    )


def _tokens(number: int, row: Row) -> ReplyTokens | None:
    """The tokens of a row; None if it has none."""
    columns = ("prompt_token_ids", "response_token_ids", "response_logprobs")
    values = [row.get(column) for column in columns]
    if all(value is None for value in values):
        return None
    prompt, ids, logprobs = values
    try:
        tokens = ReplyTokens(prompt_ids=prompt, ids=ids, logprobs=logprobs)  # type: ignore[arg-type]
    except ValidationError as error:
        raise StoreError(f"row {number}: its tokens: {first_line(error)}") from None
    if len(tokens.ids) != len(tokens.logprobs):
        raise StoreError(
            f"row {number}: found {len(tokens.ids)} response_token_ids and "
            f"{len(tokens.logprobs)} response_logprobs"
        )
    return tokens


def _task(number: int, row: Row) -> object:
    """Returns the task of a row, from the place that its format has for it."""
    places = (
        row.get("task"),
        row.get("task_id"),
        _part(number, row, "reward_model").get("ground_truth"),
        row.get("gts"),
        _part(number, row, "env_extras").get("task"),
    )
    return next((place for place in places if place is not None), None)


def _part(number: int, row: Row, name: str) -> Row:
    """A column that holds further columns; {} if it is not there."""
    part = row.get(name)
    if part is None:
        return {}
    if not isinstance(part, dict):
        raise StoreError(f"row {number}: found {type(part).__name__} in {name!r}, expected columns")
    return part


def _text(number: int, row: Row, value: object, column: str) -> str:
    if not isinstance(value, str):
        what = "a column 'task'" if column == "task" else "a text"
        raise StoreError(f"row {number}: found no {column} in {sorted(row)}, expected {what}")
    return value


def _stored(number: int, row: Row, name: object, text: object, evidence: object) -> Stored:
    task = get_task(_text(number, row, name, "task"))
    reply = _text(number, row, text, "reply")
    known = _evidence(number, evidence)
    return Stored(task.id, _source(number, reply, task, known), known)


def _evidence(number: int, evidence: object) -> dict[str, str]:
    """The evidence of a row if it has any, with the columns that a replay needs."""
    if evidence is None:
        return {}
    if not isinstance(evidence, dict):
        raise StoreError(
            f"row {number}: found {type(evidence).__name__} as evidence, expected columns"
        )
    for column in ("outcome", "record_sha256", "source_sha256", "secret_sha256", "seed"):
        value = evidence.get(column)
        if not isinstance(value, str) or (column == "seed" and not _SEED.fullmatch(value)):
            raise StoreError(f"row {number}: found {value!r} as {column!r} of its evidence")
    return evidence


def _source(number: int, text: str, task: Task, evidence: Mapping[str, str]) -> str:
    """The submission in a reply; with evidence the one that was evaluated, to the byte."""
    source = extract_source(text, task)
    if not evidence:
        return source
    block = text.partition("\n")[2].removesuffix("```")  # whole, if the source has fences itself
    for candidate in (source, source.removesuffix("\n"), text, block, block.removesuffix("\n")):
        if source_digest(candidate) == evidence["source_sha256"]:
            return candidate
    raise StoreError(f"row {number}: its source is not the one that its evidence is about")


def _last(number: int, row: Row, messages: object) -> object:
    """The text of the last message if it is the model's."""
    if isinstance(messages, str):
        return messages
    last = messages[-1] if isinstance(messages, list) and messages else None
    if not isinstance(last, dict) or not {"role", "content"} <= last.keys():
        raise StoreError(f"row {number}: found no chat in {sorted(row)}")
    return last["content"] if last["role"] == "assistant" else None
