"""Sources and diffs as highlighted HTML, for light and dark pages."""

from __future__ import annotations

import difflib

from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import CppLexer, DiffLexer, PythonLexer

from kernel_gym.inert import inert_text
from kernel_gym.judge.protocol import MAX_SOURCE_BYTES

_CLASS = "code"
_LIGHT, _DARK = "xcode", "github-dark"  # readable on the page's panels (4.5 to 1 and more)


def highlight_source(source: str, language: str) -> Markup:
    """Source code in the colours of its language.

    Args:
        source: The text.
        language: `triton` (Python) or `hip` (C++).

    Returns:
        A block of HTML.
    """
    lexer = CppLexer() if language == "hip" else PythonLexer()
    shown = inert_text(source, MAX_SOURCE_BYTES)
    return Markup(highlight(shown, lexer, HtmlFormatter(cssclass=_CLASS)))


def highlight_diff(before: str, after: str) -> Markup:
    """What changed from one source to another.

    Args:
        before: The earlier text.
        after: The later text.

    Returns:
        A block of HTML; empty when nothing changed.
    """
    old, new = (inert_text(text, MAX_SOURCE_BYTES).split("\n") for text in (before, after))
    lines = difflib.unified_diff(old, new, n=3, lineterm="")
    text = "\n".join(list(lines)[2:])
    if not text:
        return Markup()
    return Markup(highlight(text, DiffLexer(), HtmlFormatter(cssclass=_CLASS)))


def highlight_styles() -> str:
    """The colours, as CSS."""
    light = _rules(_LIGHT)
    dark = _rules(_DARK)
    return f"\n{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"


def _rules(style: str) -> str:
    """The rules for tokens; the block itself is coloured by the page."""
    rules = HtmlFormatter(style=style, cssclass=_CLASS).get_style_defs(f".{_CLASS}")
    return "\n".join(line for line in rules.splitlines() if line.startswith(f".{_CLASS} ."))
