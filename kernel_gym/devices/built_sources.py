"""Keeps what compilers have made of sources, for later evaluations of equal sources.

A compiler's process sees its own files and one source, and nothing else. So a result depends on the
recipe alone, and a source can only change its own entry. Failures are not kept: some come from the
machine.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernel_gym.devices.budget import Spent

MAX_KEPT_BYTES = 64 << 20
"""Bytes of all results that are kept. Those of one source have some 100 kB."""


@dataclass(frozen=True)
class BuildResult:
    """The results of a compiler: messages and files."""

    logs: tuple[str, ...]
    results: tuple[bytes, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of all files and messages."""
        return sum(map(len, (*self.results, *self.logs)))


class BuiltSources:
    """The results of the last recipes, with the seconds that each build took. Thread-safe.

    Args:
        capacity: Bytes of all results together.
    """

    def __init__(self, capacity: int = MAX_KEPT_BYTES) -> None:
        self._capacity = capacity
        self._built: OrderedDict[str, tuple[BuildResult, Spent]] = OrderedDict()
        self._held = 0
        self._lock = threading.Lock()

    def get(self, key: str) -> tuple[BuildResult, Spent] | None:
        """Returns the result of a recipe and what it took; None if it is not kept."""
        with self._lock:
            if key in self._built:
                self._built.move_to_end(key)
            return self._built.get(key)

    def keep(self, key: str, result: BuildResult, spent: Spent) -> None:
        """Keeps a result, and drops those that were not asked for longest."""
        with self._lock:
            if key in self._built:
                return
            self._built[key] = result, spent
            self._held += result.nbytes
            while self._held > self._capacity:
                _, (dropped, _) = self._built.popitem(last=False)
                self._held -= dropped.nbytes


def key_of(files: Mapping[str, str], *words: Sequence[object]) -> str:
    """Returns a digest of a recipe: texts by file name, then its commands and folders."""
    text = json.dumps([sorted(files.items()), *words])
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
