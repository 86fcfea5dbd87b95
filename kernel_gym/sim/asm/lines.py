"""Finds the line of each instruction in an assembler text, for people: nothing else is believed."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass

from kernel_gym.sim.asm.source_lines import Location, SourceLines

MNEMONIC = re.compile(r"(s|v|ds|buffer|global|flat|scratch|tbuffer)_\w+(\s|$)")
LABEL = re.compile(r"^([\w.$@]+):$")
# Spaces and tabs only: \s would match line ends and make long runs of empty lines quadratic.
FUNCTION_TYPE = re.compile(r"^[ \t]*\.type[ \t]+([\w.$@]+),[ \t]*@function", re.MULTILINE)
DEBUG_LABELS = (".Ltmp", ".Lfunc")
_CODE_SECTIONS = (".text", ".section\t.text", ".section .text")
_SECTIONS = (".section", ".text", ".data", ".bss", ".rodata")


@dataclass(slots=True)
class TextLine:
    """A line of code in an assembler text.

    Attributes:
        line: Its 1-based number; None if there is no text.
        text: The instruction, without comments.
        location: ``(file number, line)`` in the candidate's own file.
    """

    line: int | None
    text: str
    location: Location | None = None


def read_lines(text: str) -> tuple[dict[str, list[TextLine]], dict[int, str]]:
    """Finds the lines of code of each function, and the names of source files by number."""
    files: dict[int, str] = {}
    source = SourceLines(files)
    names = set(FUNCTION_TYPE.findall(text))
    functions: dict[str, list[TextLine]] = {}
    body: list[TextLine] = []
    in_code = True
    for number, raw in enumerate(text.partition(".amdgpu_metadata")[0].split("\n"), start=1):
        stripped = raw.strip()
        if stripped.startswith(".") and not stripped.startswith(DEBUG_LABELS):
            if stripped.startswith(".loc") and in_code:
                with contextlib.suppress(ValueError, IndexError):  # an expression
                    source.loc(stripped[4:])
            elif stripped.startswith(".file"):
                source.file(stripped[5:].strip())
            elif stripped.startswith(_SECTIONS):
                in_code = stripped.startswith(_CODE_SECTIONS)
        elif in_code and MNEMONIC.match(stripped):
            line = TextLine(number, _without_comment(stripped))
            source.place(line)
            body.append(line)
        elif label := LABEL.match(stripped.partition(";")[0].rstrip()):
            if label[1].startswith(DEBUG_LABELS):
                source.label(label[1], number)
            if label[1] in names:
                body, in_code = functions.setdefault(label[1], []), True
                source.begin_function()
    source.finish(text)
    return functions, files


def _without_comment(text: str) -> str:
    return text.partition(";")[0].partition("//")[0].rstrip()
