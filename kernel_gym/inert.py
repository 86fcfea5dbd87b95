r"""Makes untrusted text inert, for terminals, records, reports and prompts.

A candidate writes error messages, and names of kernels and types. In them, escape sequences would
act on a terminal, line separators would forge lines of a report, bidirectional marks would reorder
text, and a lone surrogate cannot be written as UTF-8. So each character that is not printable
becomes a visible escape (`\x1b`, `\u202e`), and the length is limited.

Each function returns its own results unchanged, so that a record may be read and cleaned again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

MAX_LINE = 1000
"""Most characters of a message of one line."""
MAX_TEXT = 8000
"""Most characters of a text of many lines, such as a compiler's messages."""
QUOTE = "| "
"""Begins each line that a candidate or its tools may have written."""
_CUT = " [...]"
_BREAKS = frozenset("\n\t")


def inert_line(value: object, limit: int = MAX_LINE) -> str:
    r"""Returns one line of printable text; a value that is no text becomes the name of its type.

    Args:
        value: A value from an untrusted process.
        limit: Most characters of the result.

    Example:
        >>> inert_line("\x1b[2Jone\ntwo")
        '\\x1b[2Jone\\ntwo'
        >>> inert_line(["x"] * 1000)
        'a list'
    """
    if not isinstance(value, str):
        return f"a {type(value).__name__}"[:limit]
    if type(value) is str and len(value) <= limit and value.isprintable():
        return value
    text = _printable(value[: limit + 1])
    return text if len(text) <= limit else text[: limit - len(_CUT)] + _CUT


def shown(value: object) -> str:
    """Returns a value for an error, in at most 40 inert characters."""
    short = type(value) is int and value.bit_length() < 100  # str() refuses very long numbers
    return inert_line(str(value) if short or type(value) in (bool, float) else value, 40)


def inert_text(value: object, limit: int = MAX_TEXT) -> str:
    r"""Returns printable text whose lines end with a line feed; a long text keeps both ends.

    Args:
        value: A value from an untrusted process.
        limit: Most characters of the result.

    Example:
        >>> inert_text("one\r\ntwo\u2028three")
        'one\ntwo\\u2028three'
    """
    if not isinstance(value, str):
        return inert_line(value, limit)
    if len(value) > 4 * limit:  # skips work on the part that is cut
        value = value[: 2 * limit] + value[-2 * limit :]
    text = _printable(value.replace("\r\n", "\n"), _BREAKS)
    return text if len(text) <= limit else shortened(text, limit)


def shortened(text: str, limit: int) -> str:
    """Keeps the start and the end of a text: one of them usually names the error."""
    if len(text) <= limit:
        return text
    gap = "\n[...]\n"
    half = (limit - len(gap)) // 2
    return text[:half] + gap + text[-half:]


def quoted(text: str) -> str:
    """Returns inert text with a mark before each line, so that no line passes for a trusted one."""
    return "\n".join(QUOTE + line for line in inert_text(text).split("\n"))


def fenced(source: str) -> str:
    """Returns a source as a block of Markdown with a fence longer than any in the source.

    Args:
        source: The source of a submission.
    """
    longest = max(map(len, re.findall("`+", source)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{source}\n{fence}"


def inert_json(value: object, depth: int = 6, entries: int = 64, text: int = 200) -> object:
    """Returns a JSON value of limited size in which all texts are inert lines.

    Args:
        value: Numbers, texts, lists and objects; anything else becomes the name of its type.
        depth: Most levels of lists and objects.
        entries: Most entries of each of them.
        text: Most characters of each text and key.
    """
    if value is None or isinstance(value, (float, bool)):
        return value
    if isinstance(value, str):
        return inert_line(value, text)
    if isinstance(value, int) and abs(value) < 1 << 63:
        return value
    if isinstance(value, dict) and depth:
        return inert_object(value, depth, entries, text)
    if isinstance(value, list | tuple) and depth:
        return [inert_json(v, depth - 1, entries, text) for v in value[:entries]]
    return inert_line(value, text)


def inert_object(
    value: Mapping[str, object], depth: int = 6, entries: int = 64, text: int = 200
) -> dict[str, object]:
    """Returns a JSON object of limited size in which all texts are inert lines.

    Args:
        value: Values by key.
        depth: Most levels of lists and objects, from 1.
        entries: Most entries of each of them.
        text: Most characters of each text and key.
    """
    few = list(value.items())[:entries]
    return {inert_line(k, text): inert_json(v, depth - 1, entries, text) for k, v in few}


def _printable(text: str, kept: frozenset[str] = frozenset()) -> str:
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in kept else _visible(c) for c in text)


def _visible(char: str) -> str:
    r"""Returns the escape that Python and JSON use for a character.

    Example:
        >>> _visible("\ud800")
        '\\ud800'
    """
    named = {"\n": r"\n", "\t": r"\t", "\r": r"\r"}
    return named.get(char) or char.encode("unicode_escape").decode("ascii")
