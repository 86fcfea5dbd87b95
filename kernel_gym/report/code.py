"""Sources and diffs as highlighted HTML, for light and dark pages.

Only what helps to read is coloured: comments, texts, numbers, keywords and, in a diff, lines. An
element for each token, as highlighters make them, is most of the size of a page with many sources.
For the same reason the elements have the shortest name, `i`.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterable, Iterator
from itertools import groupby

from markupsafe import Markup, escape
from pygments.lexers import CppLexer, PythonLexer
from pygments.token import Token, _TokenType

from kernel_gym.inert import inert_text
from kernel_gym.judge.protocol import MAX_SOURCE_BYTES

MAX_KEPT_SOURCES = 2000
"""Highlighted sources that are kept: the report and the page of an episode show the same ones."""
MIN_KEPT_SHARE = 0.2
"""The least share of lines that two sources have in common for a diff of them to be shown."""
_KINDS = {
    "c": Token.Comment,
    "s": Token.Literal.String,
    "m": Token.Literal.Number,
    "k": Token.Keyword,
}
"""Token types that have a colour, by their class in `report.css`."""


@functools.lru_cache(maxsize=MAX_KEPT_SOURCES)
def highlight_source(source: str, language: str) -> Markup:
    """Returns highlighted source code.

    Args:
        source: The text.
        language: `triton` (Python) or `hip` (C++).

    Returns:
        A block of HTML.
    """
    lexer = CppLexer() if language == "hip" else PythonLexer()
    shown = inert_text(source, MAX_SOURCE_BYTES)
    return _block((_kind(token), text) for token, text in lexer.get_tokens(shown))


def highlight_diff(before: str, after: str) -> Markup:
    """Returns the highlighted diff of two sources.

    Args:
        before: The earlier text.
        after: The later text.

    Returns:
        A block of HTML; empty when nothing changed, or so much that a diff would repeat the source.
    """
    old, new = (inert_text(text, MAX_SOURCE_BYTES).split("\n") for text in (before, after))
    if _kept(old, new) < MIN_KEPT_SHARE:
        return Markup()
    lines = difflib.unified_diff(old, new, n=3, lineterm="")
    changed = list(lines)[2:]
    kinds = {"+": "gi", "-": "gd", "@": "gu"}
    return _block((kinds.get(line[:1], ""), f"{line}\n") for line in changed)


def _kept(old: list[str], new: list[str]) -> float:
    """Returns the share of the new lines that the old text has too; blank lines do not count."""
    known = set(old)
    written = [line for line in new if line.strip()]
    return sum(line in known for line in written) / max(1, len(written))


def _kind(token: _TokenType) -> str:
    """Returns the class of a token; "" if it has no colour."""
    return next((kind for kind, wanted in _KINDS.items() if token in wanted), "")


def _block(parts: Iterable[tuple[str, str]]) -> Markup:
    """A block in which neighbours of a kind are one element; empty without parts."""
    inside = Markup().join(_elements(parts))
    return Markup('<pre class="code">{}</pre>').format(inside) if inside else Markup()


def _elements(parts: Iterable[tuple[str, str]]) -> Iterator[Markup]:
    for kind, run in groupby(parts, key=lambda part: part[0]):
        text = "".join(text for _, text in run)
        if kind and text.strip():
            yield Markup('<i class="{}">{}</i>').format(kind, text)
        else:
            yield escape(text)
