"""Replies that were not evaluated yet, on disk, so that a killed run pays for none twice."""

from __future__ import annotations

import threading
from pathlib import Path

from kernel_gym.episodes.episode import Episode
from kernel_gym.policies.base import Reply
from kernel_gym.records import Record
from kernel_gym.storage.json_lines import append_line, drop_cut_off, read_lines
from kernel_gym.storage.run_records import ReplyTokens
from kernel_gym.storage.run_store import REPLIES

_Key = tuple[str, int, int]
"""Task id, sample and turn."""


class KeptReply(Record):
    """One reply and the turn that it belongs to."""

    task: str
    sample: int
    turn: int
    text: str
    source: str
    prompt_tokens: int
    completion_tokens: int
    cost: float
    problem: str
    tokens: ReplyTokens | None = None


class KeptReplies:
    """Replies by the turn that they belong to. Threads may keep replies at the same time.

    Args:
        folder: The run folder. Replies that a killed run left there are read.

    Raises:
        StoreError: A line of the file is malformed.
    """

    def __init__(self, folder: Path) -> None:
        self._file, self._lock = folder / REPLIES, threading.Lock()
        drop_cut_off(self._file)
        self._left = {(k.task, k.sample, k.turn): k for k in read_lines(self._file, KeptReply)}

    def keep(self, episode: Episode, reply: Reply) -> None:
        """Writes the reply to an episode; it is on disk when this returns."""
        task, sample, turn = _key(episode)
        fields = {name: _written(value) for name, value in vars(reply).items()}
        line = KeptReply.model_validate({"task": task, "sample": sample, "turn": turn, **fields})
        with self._lock:
            append_line(self._file, line)

    def take(self, episode: Episode) -> Reply | None:
        """The reply that a killed run left for the next turn of an episode; None without one."""
        kept = self._left.pop(_key(episode), None)
        if kept is None:
            return None
        fields = kept.model_dump(exclude={"task", "sample", "turn", "tokens"})
        return Reply(**fields, tokens=kept.tokens)

    def clear(self) -> None:
        """Deletes the file, once every reply is evaluated."""
        self._file.unlink(missing_ok=True)


def _written(value: object) -> object:
    """A field of a reply; a text without the lone surrogates that no file holds."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _key(episode: Episode) -> _Key:
    """The next turn of an episode."""
    return episode.task.id, episode.sample, len(episode.turns) + 1
