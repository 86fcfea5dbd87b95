"""Judged replies of a run as rows of datasets, each with the evidence to replay its verdict.

The evidence names the seed and the hash of the secret, the versions, and the SHA-256 of the record.
With the secret of the run the evaluation can be repeated, and on the simulator the hash is the same
again. It has nothing that identifies hidden workloads.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from kernel_gym.episodes.conversation import full_prompt
from kernel_gym.episodes.episode import ChatMessage, Episode, Prompt
from kernel_gym.episodes.history import passed, speedup_bound
from kernel_gym.exchange.files import Row
from kernel_gym.exchange.prompts import verl_row
from kernel_gym.judge.scores import geometric_speedup
from kernel_gym.records import Evaluation, Outcome
from kernel_gym.rewards import RewardResult
from kernel_gym.storage.run_records import ReplyTokens, TurnRecord
from kernel_gym.storage.run_store import RunStore
from kernel_gym.tasks import get_task
from kernel_gym.tasks.workload import Split

FENCE = {"triton": "python", "hip": "cpp"}


@dataclass(frozen=True)
class JudgedReply:
    """A judged reply.

    Attributes:
        record: The record of its turn.
        source: Its submission.
        messages: The chat that it answered: the task's prompt, then earlier replies and feedback.
        tokens: Its token ids and their log-probabilities, if the policy had them.
    """

    record: TurnRecord
    source: str
    messages: tuple[ChatMessage, ...]
    tokens: ReplyTokens | None = None

    @property
    def prompt(self) -> str:
        """The task's prompt, which the chat begins with."""
        return self.messages[0]["content"]

    @property
    def text(self) -> str:
        """The reply as a fenced block."""
        return _fenced(self.source, self.record.task)

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of its speedup over the train workloads; 0 to 0 if it is not right."""
        evaluation = self.record.evaluation
        if evaluation.outcome is not Outcome.PASSED:
            return 0.0, 0.0
        high = geometric_speedup(evaluation.workloads, Split.TRAIN, "speedup_high")
        return speedup_bound(evaluation), max(high or 0.0, evaluation.speedup or 0.0)


ONLY: dict[str, Callable[[JudgedReply], bool]] = {
    "all": lambda reply: True,
    "right": lambda reply: passed(reply.record),
    "gain": lambda reply: speedup_bound(reply.record.evaluation) > 1.0,
}
"""Filters by name: `right` keeps right kernels, `gain` those that are faster than the baseline for
certain, which means by the lower bound of their speedup."""


def replies(store: RunStore, only: str = "all") -> list[JudgedReply]:
    """The replies of a run, without those on which the machine failed.

    Args:
        store: The run.
        only: A key of :data:`ONLY`.
    """
    write, tokens = full_prompt(store.config.device), store.tokens()
    samples = range(1, store.config.samples + 1)
    judged = (
        reply
        for task in store.config.tasks
        for sample in samples
        for reply in _of_episode(store, task, sample, write, tokens)
    )
    return [
        reply
        for reply in judged
        if reply.record.evaluation.outcome is not Outcome.INFRA and ONLY[only](reply)
    ]


def _of_episode(
    store: RunStore,
    name: str,
    sample: int,
    write: Prompt,
    tokens: Mapping[tuple[str, int, int], ReplyTokens],
) -> Iterator[JudgedReply]:
    """Yields the replies of an episode, each with the chat before it."""
    episode = Episode(get_task(name), sample=sample)
    for record in store.turns(name, sample):
        source = store.source(record)
        own = tokens.get((name, sample, record.turn))
        yield JudgedReply(record, source, episode.messages(write), own)
        episode = episode.after(
            source,
            record.evaluation,
            RewardResult(record.reward, record.terms),
            text=_fenced(source, name),
            problem=record.problem,
        )


def _fenced(source: str, task: str) -> str:
    end = "" if source.endswith("\n") else "\n"
    return f"```{FENCE[get_task(task).language]}\n{source}{end}```"


def evidence(reply: JudgedReply) -> Row:
    """The facts that are needed to repeat an evaluation and to compare its record."""
    record, evaluation = reply.record, reply.record.evaluation
    return {
        "task": record.task,
        "device": evaluation.device,
        "seed": str(evaluation.seed),  # 63 bits do not fit the numbers of every reader of JSON
        "secret_sha256": evaluation.secret_sha256,
        "protocol_version": evaluation.protocol_version,
        "versions": json.dumps(evaluation.versions, sort_keys=True),
        "source_sha256": evaluation.source_sha256,
        "record_sha256": record_sha256(evaluation),
        "outcome": str(evaluation.outcome),
        "reward": record.reward,
        "speedup": evaluation.speedup,
        "speedup_low": evaluation.speedup_low,
        "unseen_speedup": evaluation.unseen_speedup,
        "sample": record.sample,
        "turn": record.turn,
    }


def record_sha256(evaluation: Evaluation) -> str:
    """The hash of a record without wall-clock times."""
    return hashlib.sha256(evaluation.canonical().encode()).hexdigest()


def _messages(rows: Sequence[JudgedReply]) -> Iterator[Row]:
    for reply in rows:
        yield {
            "messages": [*reply.messages, {"role": "assistant", "content": reply.text}],
            "task": reply.record.task,
            "reward": reply.record.reward,
            **_tokens(reply, any(row.tokens for row in rows)),
            "evidence": evidence(reply),
        }


def _tokens(reply: JudgedReply, wanted: bool) -> Row:
    """The columns of tokens, which a file has if one of its rows has them."""
    if not wanted:
        return {}
    own = reply.tokens
    return {
        "prompt_token_ids": list(own.prompt_ids) if own else None,
        "response_token_ids": list(own.ids) if own else None,
        "response_logprobs": list(own.logprobs) if own else None,
    }


def _verl(rows: Sequence[JudgedReply]) -> Iterator[Row]:
    for index, reply in enumerate(rows):
        row = verl_row(index, get_task(reply.record.task), reply.prompt)
        extra = row["extra_info"]
        assert isinstance(extra, dict)
        extra |= {"response": reply.text, "evidence": evidence(reply)}
        row["prompt"] = list(reply.messages)
        yield row | {"reward": reply.record.reward, **_tokens(reply, any(r.tokens for r in rows))}


def _preferences(rows: Sequence[JudgedReply]) -> Iterator[Row]:
    """Pairs of one task whose intervals are apart; a wrong kernel is below every right one.

    Both are whole kernels, so each answers the task's prompt, whatever its turn was.
    """
    by_task: dict[str, list[JudgedReply]] = {}
    for reply in rows:
        by_task.setdefault(reply.record.task, []).append(reply)
    for same in by_task.values():
        for first, other in combinations(same, 2):
            low, high = sorted((first, other), key=lambda reply: reply.interval)
            if low.interval[1] < high.interval[0]:
                yield {
                    "prompt": [{"role": "user", "content": high.prompt}],
                    "chosen": [{"role": "assistant", "content": high.text}],
                    "rejected": [{"role": "assistant", "content": low.text}],
                    "task": high.record.task,
                    "evidence_chosen": evidence(high),
                    "evidence_rejected": evidence(low),
                }


def _apex(rows: Sequence[JudgedReply]) -> Iterator[Row]:
    """The rows of `sft_warmstart.jsonl` of AMD's Apex; the response is the source itself."""
    for reply in rows:
        yield {
            "prompt": "\n\n".join(message["content"] for message in reply.messages),
            "response": reply.source,
            "score": reply.record.reward,
            "kernel_type": get_task(reply.record.task).problem.name,
            "task_id": reply.record.task,
            "evidence": evidence(reply),
        }


REPLY_FORMATS: dict[str, Callable[[Sequence[JudgedReply]], Iterator[Row]]] = {
    "messages": _messages,
    "preferences": _preferences,
    "verl": _verl,
    "apex": _apex,
}
"""The formats by name."""


def reply_rows(store: RunStore, kind: str, only: str = "all") -> list[Row]:
    """The rows of a run.

    Args:
        store: The run.
        kind: A key of :data:`REPLY_FORMATS`.
        only: A key of :data:`ONLY`.
    """
    return list(REPLY_FORMATS[kind](replies(store, only)))
