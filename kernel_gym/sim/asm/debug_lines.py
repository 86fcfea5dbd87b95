"""Finds the source line of each instruction of a code object, for people.

LLVM's tools read the debug information. Without them, or if one fails, nothing is known. An
instruction of an inlined function of a header, such as `blockIdx.x` or `expf`, belongs to the line
that calls it, in the file of the kernel.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache

from kernel_gym.sim.asm.lines import TextLine

_VERSIONS = (21, 20, 19, 18, 17)
_MAX_SECONDS = 20
_FUNCTION = re.compile(r"^[0-9a-f]+ <[^>]+>:$")
_CODE = re.compile(r"^\s+\S.*?\s*// ([0-9A-F]{12}):")
_FRAME = re.compile(r"^(.+):(\d+)(?: \(discriminator \d+\))?$")
_SYMBOLIZER_OPTIONS = ("--addresses", "--inlines", "--functions=none", "--output-style=GNU")
Place = tuple[str, int]
"""A file and a line."""


def read_debug_lines(content: bytes) -> tuple[dict[int, TextLine], dict[int, str]]:
    """Returns the places of instructions by address, and names of source files by number."""
    functions = _addresses(content)
    calls = _calls(content, [address for function in functions for address in function])
    numbers: dict[str, int] = {}
    places: dict[int, TextLine] = {}
    for function in functions:
        for address, place in _filled(function, calls):
            location = None
            if place is not None:
                location = numbers.setdefault(place[0], len(numbers) + 1), place[1]
            places[address] = TextLine(None, "", location)
    return places, {number: name for name, number in numbers.items()}


def _addresses(content: bytes) -> list[list[int]]:
    """Returns the addresses of the instructions of each function."""
    if b".debug_line" not in content:
        return []
    functions: list[list[int]] = [[]]
    for text in _run("llvm-objdump", content, "-d", "--no-show-raw-insn", "{file}").splitlines():
        if _FUNCTION.match(text):
            functions.append([])
        elif code := _CODE.match(text):
            functions[-1].append(int(code[1], 16))
    return functions


def _calls(content: bytes, addresses: list[int]) -> dict[int, list[Place]]:
    """Returns the places of the calls that lead to each instruction, the innermost one first."""
    if not addresses:
        return {}
    asked = "".join(f"{address:#x}\n" for address in addresses)
    options = (*_SYMBOLIZER_OPTIONS, "--obj={file}")
    calls: dict[int, list[Place]] = {}
    frames: list[Place] = []
    for text in _run("llvm-symbolizer", content, *options, asked=asked).splitlines():
        if text.startswith("0x"):
            frames = calls.setdefault(int(text, 16), [])
        elif frame := _FRAME.match(text):
            frames.append((frame[1], int(frame[2])))
    return calls


def _filled(
    function: list[int], calls: dict[int, list[Place]]
) -> Iterator[tuple[int, Place | None]]:
    """Yields the place of each instruction of a function.

    Line 0 is code that the compiler added. It belongs to the line before it, or to the next one.
    """
    own = [(address, _own_place(calls.get(address, []))) for address in function]
    last = next((place for _, place in own if place is not None), None)
    for address, place in own:
        last = place or last
        yield address, last


def _own_place(frames: list[Place]) -> Place | None:
    """Returns the innermost place in the file of the outermost call; None if it has no line."""
    own = [frame for frame in frames if frame[0] == frames[-1][0]]
    return own[0] if own and own[0][1] else None


def _run(tool: str, content: bytes, *options: str, asked: str = "") -> str:
    """Returns what a tool prints of a code object, or nothing."""
    program = _program(tool)
    if program is None:
        return ""
    file = os.memfd_create("code")
    try:
        os.write(file, content)
        done = subprocess.run(
            [program, *(option.format(file=f"/proc/self/fd/{file}") for option in options)],
            capture_output=True,
            text=True,
            errors="replace",
            input=asked,
            timeout=_MAX_SECONDS,
            pass_fds=[file],
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    finally:
        os.close(file)
    return done.stdout


@cache
def _program(tool: str) -> str | None:
    paths = (shutil.which(f"{tool}-{version}") for version in _VERSIONS)
    return next(filter(None, paths), None)
