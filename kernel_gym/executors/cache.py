"""Evaluations by content: what was evaluated before is not evaluated again."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass

from kernel_gym.judge.protocol import PROTOCOL_VERSION
from kernel_gym.records import Evaluation, Outcome
from kernel_gym.storage.secret import PUBLIC, RunSecret


@dataclass(frozen=True)
class Key:
    """Everything that decides an evaluation: two with equal keys are the same."""

    task: str
    source_sha256: str
    device: str
    seed: int
    protocol: str = PROTOCOL_VERSION
    secret_sha256: str = ""
    """Of the run whose draws they are; empty where the seed alone decides."""

    @classmethod
    def of(cls, task: str, source: str, device: str, seed: int, secret: RunSecret = PUBLIC) -> Key:
        """The key of a submission."""
        text = source.encode("utf-8", errors="surrogatepass")
        digest = hashlib.sha256(text).hexdigest()
        return cls(task, digest, device, seed, secret_sha256=secret.sha256)


class EvaluationCache:
    """The most recent evaluations. Thread-safe; one may serve several executors.

    A cached result is the recorded one, wall-clock times included, so a time that was measured once
    stays what it was. Failures of ours are never kept.

    Args:
        capacity: How many are kept.
    """

    def __init__(self, capacity: int = 4096) -> None:
        self._capacity = capacity
        self._entries: OrderedDict[Key, Evaluation] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Key) -> Evaluation | None:
        """The evaluation, if it is there."""
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
            return self._entries.get(key)

    def put(self, key: Key, evaluation: Evaluation) -> None:
        """Keeps an evaluation, unless it failed through a fault of ours."""
        if evaluation.outcome is Outcome.INFRA:
            return
        with self._lock:
            self._entries[key] = evaluation
            self._entries.move_to_end(key)
            while len(self._entries) > self._capacity:
                self._entries.popitem(last=False)

    def __len__(self) -> int:
        return len(self._entries)
