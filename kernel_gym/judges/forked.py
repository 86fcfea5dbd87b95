"""Calls in a process of their own, with a limit of time.

A candidate may replace functions of the process that runs it. So each one runs in a child, and
the next child starts from the untouched parent.
"""

from __future__ import annotations

import json
import os
import select
import signal
import time
from collections.abc import Callable

MAX_ANSWER_BYTES = 1 << 20
CLOCK = time.monotonic
"""Read in the parent only, so no candidate can replace it."""


def call_forked(function: Callable[[], object], seconds: float) -> dict[str, object]:
    """Returns what a function returned in a child: `value` or `error`, and `seconds`.

    Args:
        function: Returns something that JSON can state.
        seconds: Limit of wall time; then the child and its children are killed.
    """
    begin = CLOCK()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        os.setpgid(0, 0)
        _answer(function, write)
    os.close(write)
    text = _receive(read, begin + seconds)
    _end(child)
    took = round(CLOCK() - begin, 2)
    if text is None:
        return {"error": f"not done in {seconds:.0f} s", "seconds": took}
    try:
        answer = json.loads(text)
    except ValueError:
        return {"error": "the process ended without an answer", "seconds": took}
    if not isinstance(answer, dict) or not answer.keys() <= {"value", "error"}:
        return {"error": "the answer is malformed", "seconds": took}
    return {**answer, "seconds": took}


def _answer(function: Callable[[], object], write: int) -> None:
    """Writes the answer of a function and ends the process."""
    try:
        try:
            text = json.dumps({"value": function()})
        except BaseException as error:  # what a candidate raises is its answer
            text = json.dumps({"error": f"{type(error).__name__}: {error}"[:300]})
        os.write(write, text.encode()[:MAX_ANSWER_BYTES])
    finally:  # nothing may lead the child back into the caller
        os._exit(0)


def _receive(read: int, until: float) -> bytes | None:
    """Returns what a child writes until it closes the pipe, or None if it is late."""
    parts: list[bytes] = []
    try:
        while (left := until - CLOCK()) > 0 and sum(map(len, parts)) < MAX_ANSWER_BYTES:
            if select.select([read], [], [], left)[0]:
                part = os.read(read, 1 << 16)
                if not part:
                    return b"".join(parts)
                parts.append(part)
                if part.endswith(b"}"):
                    return b"".join(parts)
        return None
    finally:
        os.close(read)


def _end(child: int) -> None:
    """Kills a child and the children of its group."""
    for kill in (os.killpg, os.kill):
        try:
            kill(child, signal.SIGKILL)
        except ProcessLookupError:
            continue
    os.waitpid(child, 0)
