"""KernelBenchX's corpus of pairs (`data/kbx_corpus`) as chats: a kernel, its fault, a better one.

The suite's own verdict on a pair is not repeated here. The rows have no evidence, so
`kernel-gym import` judges their last reply as any other one.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping, Sequence

from kernel_gym.episodes.conversation import full_prompt
from kernel_gym.exchange.files import Row
from kernel_gym.inert import inert_text
from kernel_gym.storage.json_lines import StoreError
from kernel_gym.tasks import get_task
from kernel_gym.tasks.names import imported_ids

KEYS = frozenset({"task_id", "kind", "before", "after", "before_code", "after_code"})
NAMED = 3
"""Most names of tasks in a message."""
MAX_ERROR_CHARACTERS = 2000
"""Most characters of a recorded error, of which the end counts."""


def is_corpus(rows: Sequence[Row]) -> bool:
    """Whether rows are pairs of the corpus."""
    return bool(rows) and all(row.keys() >= KEYS for row in rows)


def corpus_rows(rows: Sequence[Row], device: str) -> list[Row]:
    """Returns a chat for each pair whose second kernel is better, in the columns of `messages`.

    Pairs of tasks that were not imported are left out, and those that become worse, or of which a
    source does not parse: the corpus has lost line breaks in some.

    Args:
        rows: The pairs.
        device: The device that prompts describe.

    Raises:
        StoreError: No pair can be used.
    """
    chats = list(_chats(rows, device))
    if not chats:
        names = ", ".join(sorted({_task(row) for row in rows if _is_usable(row)})[:NAMED])
        raise StoreError(
            "found no pair that can be used of an imported task: import tasks of KernelBenchX that "
            f"have one, such as {names or 'none of this file'}"
        )
    return chats


def _chats(rows: Sequence[Row], device: str) -> Iterator[Row]:
    write, known = full_prompt(device), set(imported_ids())
    for row in rows:
        name = f"kernelbenchx/{_task(row)}"
        if name not in known or not _is_usable(row):
            continue
        first, second = (_block(row[key]) for key in ("before_code", "after_code"))
        messages = (
            ("user", write(get_task(name))),
            ("assistant", first),
            ("user", _verdict(row["before"])),
            ("assistant", second),
        )
        chat = [{"role": role, "content": text} for role, text in messages]
        yield {"messages": chat, "task": name, "kind": str(row["kind"])}


def _task(row: Row) -> str:
    """Returns the name of a pair's task in the suite."""
    return str(row["task_id"]).rpartition("/")[2].removesuffix(".py")


def _is_usable(row: Row) -> bool:
    """Whether a pair becomes better, and both of its sources parse."""
    pair = str(row["before_code"]), str(row["after_code"])
    return "regression" not in str(row["kind"]) and all(map(_parses, pair))


def _block(source: object) -> str:
    return f"```python\n{str(source).rstrip()}\n```"


def _verdict(before: object) -> str:
    """The suite's verdict on the first kernel, in the words of a user."""
    facts: Mapping[str, object] = before if isinstance(before, dict) else {}
    if facts.get("call_ok") is True and facts.get("exe_ok") is True:
        speedup = facts.get("speedup")
        known = f" Its speedup is {speedup:.3f}." if isinstance(speedup, float) else ""
        return f"The kernel is right.{known} Make it faster."
    stage = "runs and its values are wrong" if facts.get("call_ok") is True else "does not run"
    error = inert_text(str(facts.get("error") or ""))[-MAX_ERROR_CHARACTERS:]
    return f"The kernel {stage}. Repair it.\n{error}".rstrip()


def _parses(source: object) -> bool:
    if not isinstance(source, str) or not source.strip():
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True
