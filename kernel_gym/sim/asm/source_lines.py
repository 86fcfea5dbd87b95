"""Finds the line of the candidate's own file to which each instruction belongs.

`.loc` names the line that an instruction was compiled from. That line may be in a header of which a
function was inlined. A reader wants the line of the candidate that called it. Triton's LLVM writes
that call as a comment behind `.loc`. Clang writes it to the debug information (DWARF 5, sections
3.3.8.2 and 2.17.3), which is read here as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Protocol

Location = tuple[int, int]
"""Number of a source file, and a line."""
Span = tuple[int, int]
"""First line in the assembler text, and the line after the last."""

PRIMARY_FILE = 0
"""DWARF 5 gives this number to the file that the compiler was called with."""
_INLINED_AT = re.compile(r"@\[ ([^\s:]+):(\d+)")
_ATTRIBUTE = re.compile(r"^\s*\.\w+\s+(\S+)\s+; (DW_AT_\w+)", re.MULTILINE)
_DIFFERENCE = re.compile(r"(\.L[\w$]+)-(\.L[\w$]+)")
_RANGE_LIST = re.compile(r"^\.Ldebug_ranges\d+:", re.MULTILINE)


class LocatedObject(Protocol):
    """An object with a line in the assembler text and a place in the source."""

    line: int | None
    location: Location | None


class SourceLines:
    """Follows `.loc` and `.file` through an assembler text.

    Args:
        files: Source file names by number. This class fills it.
    """

    def __init__(self, files: dict[int, str]) -> None:
        self._files = files
        self._labels: dict[str, int] = {}
        self._own = ""
        self._own_names: set[str] = set()
        self._last: Location | None = None
        self._inlined = False
        self._function: list[LocatedObject] = []
        self._functions = [self._function]
        self._pending: list[LocatedObject] = []

    def begin_function(self) -> None:
        """Begins a function, with no known place."""
        self._own, self._last, self._inlined, self._function = "", None, False, []
        self._functions.append(self._function)

    def label(self, name: str, line: int) -> None:
        """Records the line of the text on which a label of the debug information stands."""
        self._labels[name] = line

    def file(self, argument: str) -> None:
        """Reads `.file 1 "directory" "name"`."""
        numbered = re.match(r"(\d+)\s+(.*)", argument)
        if numbered:
            parts = re.findall(r'"([^"]*)"', numbered.group(2))
            self._files[int(numbered.group(1))] = "/".join(parts[:2])

    def loc(self, argument: str) -> None:
        """Reads `.loc 1 20 10 ; inner.py:20:10 @[ kernel.py:7:3 ]`.

        Line 0 is code that the compiler added. It belongs to the line before it.
        """
        words = argument.split()
        file, line = int(words[0]), int(words[1])
        calls = _INLINED_AT.findall(argument)
        self._own = self._own or self._own_name(file, calls)
        self._own_names.add(self._own)
        own_calls = [int(at) for name, at in calls if _base(name) == self._own]
        self._inlined = False
        if line == 0:
            return
        if _base(self._files.get(file, "")) == self._own:
            self._last = file, line
        elif own_calls:
            self._last = self._number(self._own), own_calls[0]
        else:
            self._inlined = True

    def place(self, instruction: LocatedObject) -> None:
        """Gives an instruction the place of the last `.loc`."""
        instruction.location = self._last
        if self._inlined or self._last is None:
            self._pending.append(instruction)
        self._function.append(instruction)

    def finish(self, text: str) -> None:
        """Places inlined instructions by the debug information of the whole text.

        An instruction without an entry there keeps the last own line before it, or takes the next
        one after it.
        """
        if not self._pending:
            return
        calls = self._calls_by_line(text)
        stack: list[tuple[Span, Location]] = []
        for instruction in self._pending:  # in the order of the text
            line = instruction.line or 0
            while calls and calls[-1][0][0] <= line:
                stack.append(calls.pop())
            while stack and stack[-1][0][1] <= line:
                stack.pop()
            if stack:
                instruction.location = stack[-1][1]
        for function in self._functions:
            _fill_start(function)

    def _own_name(self, file: int, calls: list[tuple[str, str]]) -> str:
        """The file that the compiler was called with, or else the file of the outermost call."""
        if PRIMARY_FILE in self._files:
            return _base(self._files[PRIMARY_FILE])
        return _base(calls[-1][0] if calls else self._files.get(file, ""))

    def _number(self, own: str) -> int:
        """The number of a file. A file without a number gets a negative one."""
        for number, name in self._files.items():
            if _base(name) == own:
                return number
        number = min(self._files, default=0) - 1
        self._files[number] = own
        return number

    def _calls_by_line(self, text: str) -> list[tuple[Span, Location]]:
        """Calls in own files, in reverse order: the outer of two calls with equal start is last."""
        calls = [
            ((self._labels[start], self._labels[end]), location)
            for spans, location in inlined_calls(text)
            if _base(self._files.get(location[0], "")) in self._own_names
            for start, end in spans
            if start in self._labels and end in self._labels
        ]
        calls.sort(key=lambda call: call[0][0])  # stable: outer calls stay before inner ones
        return calls[::-1]


def inlined_calls(text: str) -> Iterator[tuple[list[tuple[str, str]], Location]]:
    """Reads the inlined calls, outer calls before inner ones.

    Args:
        text: An assembler text with DWARF 5 debug information and the compiler's comments.

    Yields:
        Pairs of labels between which the code of the call lies, and the place of the call.
    """
    lists = _range_lists(_section(text, ".debug_rnglists"))
    for entry in _section(text, ".debug_info").split("; Abbrev [")[1:]:
        if "DW_TAG_inlined_subroutine" not in entry.partition("\n")[0]:
            continue
        values = {name: value for value, name in _ATTRIBUTE.findall(entry)}
        file, line = (values.get(f"DW_AT_call_{what}", "") for what in ("file", "line"))
        ranges, length = values.get("DW_AT_ranges", ""), values.get("DW_AT_high_pc", "")
        spans = [(start, end) for end, start in _DIFFERENCE.findall(length)]
        if ranges.isdecimal() and int(ranges) < len(lists):
            spans = lists[int(ranges)]
        if file.isdecimal() and line.isdecimal():
            yield spans, (int(file), int(line))


def _fill_start(function: list[LocatedObject]) -> None:
    """Gives instructions at the head of a function without a place the next own line."""
    following: Location | None = None
    for instruction in reversed(function):
        instruction.location = following = instruction.location or following


def _range_lists(section: str) -> list[list[tuple[str, str]]]:
    """The lists of `.debug_rnglists` in order, each as pairs of labels."""
    return [list(_pairs(part)) for part in _RANGE_LIST.split(section)[1:]]


def _pairs(part: str) -> Iterable[tuple[str, str]]:
    for entry in part.split("DW_RLE_")[1:]:
        differences = _DIFFERENCE.findall(entry)
        if entry.startswith("offset_pair") and len(differences) == 2:
            yield differences[0][0], differences[1][0]
        elif entry.startswith("startx_length") and differences:
            yield differences[0][1], differences[0][0]


def _section(text: str, name: str) -> str:
    """A section of debug information up to the next one."""
    _, _, rest = text.partition(f"\t.section\t{name},")
    return rest.partition("\t.section\t")[0]


def _base(path: str) -> str:
    return path.rpartition("/")[2]
