"""Finds the source line of each instruction of a code object, for people.

LLVM's tool reads the debug information. Without the tool, or if it fails, nothing is known.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache

from kernel_gym.sim.asm.lines import TextLine
from kernel_gym.sim.asm.source_lines import SourceLines

_VERSIONS = (21, 20, 19, 18, 17)
_MAX_SECONDS = 20
_FUNCTION = re.compile(r"^[0-9a-f]+ <[^>]+>:$")
_LINE = re.compile(r"^; (\S.*):(\d+)$")
_CODE = re.compile(r"^\s+\S.*?\s*// ([0-9A-F]{12}):")


def read_debug_lines(content: bytes) -> tuple[dict[int, TextLine], dict[int, str]]:
    """Returns the places of instructions by address, and names of source files by number."""
    files: dict[int, str] = {}
    source = SourceLines(files)
    numbers: dict[str, int] = {}
    places: dict[int, TextLine] = {}
    for text in _listing(content).splitlines():
        if line := _LINE.match(text):
            number = numbers.setdefault(line[1], len(numbers) + 1)
            files.setdefault(number, line[1])
            source.loc(f"{number} {line[2]} 0")
        elif _FUNCTION.match(text):
            source.begin_function()
        elif code := _CODE.match(text):
            places[int(code[1], 16)] = place = TextLine(None, "")
            source.place(place)
    source.finish("")
    return places, files


def _listing(content: bytes) -> str:
    tool = _tool()
    if tool is None or b".debug_line" not in content:
        return ""
    file = os.memfd_create("code")
    try:
        os.write(file, content)
        done = subprocess.run(
            [tool, "-d", "-l", "--no-show-raw-insn", f"/proc/self/fd/{file}"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_MAX_SECONDS,
            pass_fds=[file],
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    finally:
        os.close(file)
    return done.stdout


@cache
def _tool() -> str | None:
    paths = (shutil.which(f"llvm-objdump-{version}") for version in _VERSIONS)
    return next(filter(None, paths), None)
