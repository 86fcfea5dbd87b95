"""The cache of evaluations: equal submissions are evaluated once."""

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
    """Everything that decides an evaluation. Evaluations with equal keys are equal."""

    task: str
    source_sha256: str
    device: str
    seed: int
    protocol: str = PROTOCOL_VERSION
    secret_sha256: str = ""
    """The hash of the run's secret; empty if the seed alone decides the draws."""
    problem_sha256: str = ""
    """The hash of the problem's texts: two problems of one name may follow each other."""

    @classmethod
    def of(
        cls,
        task: str,
        source: str,
        device: str,
        seed: int,
        secret: RunSecret = PUBLIC,
        problem_sha256: str = "",
    ) -> Key:
        """Returns the key of a submission."""
        text = source.encode("utf-8", errors="surrogatepass")
        digest = hashlib.sha256(text).hexdigest()
        return cls(
            task,
            digest,
            device,
            seed,
            secret_sha256=secret.sha256,
            problem_sha256=problem_sha256,
        )


class EvaluationCache:
    """The most recent evaluations. Thread-safe. Several executors may share one.

    A cached result is the whole record with its wall-clock times, so a time is measured once.
    `infra` outcomes are never cached.

    Args:
        capacity: The most evaluations that it holds.
    """

    def __init__(self, capacity: int = 4096) -> None:
        self._capacity = capacity
        self._entries: OrderedDict[Key, Evaluation] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Key) -> Evaluation | None:
        """Returns the cached evaluation, or None."""
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
            return self._entries.get(key)

    def put(self, key: Key, evaluation: Evaluation) -> None:
        """Caches an evaluation, unless its outcome is `infra`."""
        if evaluation.outcome is Outcome.INFRA:
            return
        with self._lock:
            self._entries[key] = evaluation
            self._entries.move_to_end(key)
            while len(self._entries) > self._capacity:
                self._entries.popitem(last=False)

    def __len__(self) -> int:
        return len(self._entries)
