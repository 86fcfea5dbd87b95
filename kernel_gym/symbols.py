"""Names of kernels as their author wrote them, from the symbols of a C++ compiler.

A symbol comes from a candidate and may be hostile. So no native code reads it, and the work is
bounded.
"""

from __future__ import annotations

import functools
import re

MAX_SYMBOL = 300
"""Symbols with more characters are not demangled."""
MAX_REFERENCES = 16
"""Most references to earlier parts of a symbol: each may double the length of the name."""
MAX_NAME = 80
_PART = re.compile(r"(\d+)")
_TRUTH = {"(bool)0": "false", "(bool)1": "true"}
_LITERAL = re.compile(r"\([\w: ]+\)(n?)(?=\d)")


@functools.lru_cache(maxsize=512)
def plain_name(symbol: str) -> str:
    """Returns the name of a kernel with its template arguments, without its parameters.

    Example:
        >>> plain_name("_Z11rope_kernelPK6__half")
        'rope_kernel'
        >>> plain_name("_Z6reduceIfLi256EEvPKT_")
        'reduce<float, 256>'
    """
    if not symbol.startswith("_Z"):
        return symbol
    name = _demangled(symbol) or _first_names(symbol) or symbol
    return name if len(name) <= MAX_NAME else name[: MAX_NAME - 3] + "..."


def _demangled(symbol: str) -> str:
    """Returns the whole name; empty where the symbol is not understood."""
    from itanium_demangler import parse

    if len(symbol) > MAX_SYMBOL or len(re.findall(r"[ST][0-9A-Z]*_", symbol)) > MAX_REFERENCES:
        return ""
    try:
        # the demangler does not know the type _Float16
        tree = parse(symbol.replace("DF16_", "Dh"))
        name = str(tree.name) if tree is not None and tree.kind == "func" else ""
    except Exception:  # a hostile symbol may make it raise anything
        return ""
    for literal, word in _TRUTH.items():
        name = name.replace(literal, word)
    name = _LITERAL.sub(lambda match: "-" if match.group(1) else "", name)
    return name.replace("_GLOBAL__N_1", "(anonymous namespace)")


def _first_names(symbol: str) -> str:
    """Returns the names at the start of a symbol: namespaces and function, without arguments."""
    rest, names = re.sub(r"^_ZL?(?:N[rVK]*)?", "", symbol), []
    while match := _PART.match(rest):
        length = int(match.group(1)[:6])
        names.append(rest[match.end() :][:length])
        rest = rest[match.end() + length :]
        if not symbol.startswith("_ZN"):
            break
    return "::".join(name for name in names if name and name != "_GLOBAL__N_1")
