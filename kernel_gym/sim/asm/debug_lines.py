"""Finds the source line of each instruction of a code object, for people.

LLVM's symbolizer reads the debug information. Without the tool, or if it fails, nothing is known.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from kernel_gym.sim.asm.source_lines import Location

_VERSIONS = (22, 21, 20, 19, 18, 17)
_MAX_SECONDS = 20


def read_debug_lines(
    content: bytes, addresses: Iterable[int]
) -> tuple[dict[int, Location], dict[int, str]]:
    """Returns the places of instructions by address, and names of source files by number.

    A function of a header may be inlined, such as the one behind `threadIdx.x`. A reader wants the
    line of the file that called it. So the place is the innermost call in the file of the function
    that holds the instruction. Line 0 is code that the compiler added. It belongs to the line
    before it.

    Args:
        content: A code object.
        addresses: The addresses of its instructions, function by function.
    """
    numbers: dict[str, int] = {}
    places: dict[int, Location] = {}
    function, before = "", None
    for entry in _symbolized(content, addresses):
        calls = entry["Symbol"]
        if calls[-1]["StartAddress"] != function:
            function, before = calls[-1]["StartAddress"], None
        file = calls[-1]["FileName"]
        own = [call["Line"] for call in calls if call["Line"] and call["FileName"] == file]
        if own:
            before = numbers.setdefault(file, len(numbers) + 1), own[0]
        if before is not None:
            places[int(entry["Address"], 16)] = before
    return places, {number: file for file, number in numbers.items()}


def _symbolized(content: bytes, addresses: Iterable[int]) -> Iterator[dict[str, Any]]:
    """Yields LLVM's entry of each address: its inlined calls, the innermost first."""
    tool = _tool()
    if tool is None or b".debug_line" not in content:
        return
    descriptor = os.memfd_create("code")
    try:
        os.write(descriptor, content)
        done = subprocess.run(
            [tool, f"--obj=/proc/self/fd/{descriptor}", "--output-style=JSON"],
            input="\n".join(map(hex, addresses)),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_MAX_SECONDS,
            pass_fds=[descriptor],
            env={},  # no server of debug information
        )
        yield from (json.loads(line) for line in done.stdout.splitlines())
    except (OSError, subprocess.SubprocessError, ValueError):
        return
    finally:
        os.close(descriptor)


@cache
def _tool() -> str | None:
    paths = (shutil.which(f"llvm-symbolizer-{version}") for version in _VERSIONS)
    return next(filter(None, paths), None)
