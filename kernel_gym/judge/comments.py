"""Removes comments from C++, in linear time, because the source is untrusted.

A regular expression for comments takes quadratic time on comments that never end. This scanner
never goes back: each step finds the next relevant position and continues after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_OPENS = re.compile(r'//|/\*|\b(?:u8|[uUL])?R"[^()\\\s"]{0,16}\(|"|\'')
_IN_LINE = {quote: re.compile(rf"[{quote}\\\n]") for quote in "\"'"}
"""Where text in quotes may end, or has an escape."""


def without_comments(source: str) -> str:
    """Replaces each comment by a space, or by its line ends.

    Args:
        source: C++. Literals stay as they are. A comment or raw string without an end extends to
            the end of the source, a quote without an end to the end of its line. Lines that a
            backslash continues are joined; the number of lines stays.
    """
    return "".join(_without(_joined(source)))


def _joined(source: str) -> str:
    lines: list[str] = []
    parts: list[str] = []
    for line in source.split("\n"):
        stripped = line.rstrip(" \t\r\v\f")
        if stripped.endswith("\\"):
            parts.append(stripped[:-1])
        else:
            lines.append("".join((*parts, line, "\n" * len(parts))))
            parts = []
    return "\n".join([*lines, *(["".join(parts)] if parts else [])])


def _without(source: str) -> Iterator[str]:
    at = 0
    while opening := _OPENS.search(source, at):
        start, mark = opening.start(), opening.group()
        yield source[at:start]
        if mark == "//":
            end = source.find("\n", start)
            at = len(source) if end < 0 else end
            yield " "
        elif mark == "/*":
            at = _end(source, "*/", start + 2)
            yield "\n" * source.count("\n", start, at) or " "
        else:
            at = _end_of_text(source, opening)
            yield source[start:at]
    yield source[at:]


def _end(source: str, mark: str, start: int) -> int:
    """Returns the position behind the next mark, or the end of the source."""
    place = source.find(mark, start)
    return len(source) if place < 0 else place + len(mark)


def _end_of_text(source: str, opening: re.Match[str]) -> int:
    """Returns the position behind a literal."""
    mark = opening.group()
    if mark[-1] == "(":
        delimiter = mark.partition('"')[2][:-1]
        return _end(source, f'){delimiter}"', opening.end())
    at = opening.end()
    while match := _IN_LINE[mark].search(source, at):
        at = match.end()
        if match.group() != "\\":
            break
        at += 1  # the character that is escaped
    else:
        return len(source)
    return min(at, len(source))
