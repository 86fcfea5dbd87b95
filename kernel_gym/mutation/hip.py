"""Operators on HIP sources, by tokens: same meaning, other text."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping

_TOKEN = re.compile(
    r"(?P<line>^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*)"
    r"|(?P<comment>//[^\n]*|/\*.*?\*/)"
    r'|(?P<text>"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\')'
    r"|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<number>\.?\d(?:[\w.']|[eEpP][+-])*)"
    r"|(?P<space>\s+)"
    r"|(?P<mark>.)",
    re.S | re.M,
)
_DEFINED = re.compile(
    r"^(?:__global__|__device__|static|inline|constexpr|__forceinline__)[^;={()]*?\b(\w+)\s*[=({\[]",
    re.M,
)
_KEPT = frozenset("extern typedef using template operator main __launch_bounds__".split())


def rename_names(source: str, entry: str, draw: random.Random) -> str | None:
    """Gives functions and constants that the source defines other names."""
    names = _own_names(source, entry)
    if not names:
        return None
    chosen = draw.sample(names, draw.randint(1, len(names)))
    return _replaced(source, {name: _fresh(source, draw) for name in chosen})


def alias(source: str, entry: str, draw: random.Random) -> str | None:
    """Puts a macro in the place of names that the source defines."""
    names = _own_names(source, entry)
    if not names:
        return None
    chosen = draw.sample(names, draw.randint(1, len(names)))
    aliases = {name: _fresh(source, draw) for name in chosen}
    macros = "".join(f"#define {new} {old}\n" for old, new in aliases.items())
    return macros + _replaced(source, aliases)


def respell(source: str, entry: str, draw: random.Random) -> str | None:
    """Writes whole decimal numbers in hexadecimal digits or as sums."""
    tokens = _tokens(source)
    numbers = [
        i
        for i, (kind, text) in enumerate(tokens)
        if kind == "number" and re.fullmatch(r"[1-9]\d*", text)
    ]
    if not numbers:
        return None
    pieces = [text for _, text in tokens]
    for i in draw.sample(numbers, draw.randint(1, len(numbers))):
        value = int(pieces[i])
        pieces[i] = draw.choice((f"0x{value:x}", f"({value - 1} + 1)"))
    return "".join(pieces)


def reorder(source: str, entry: str, draw: random.Random) -> str | None:
    """Swaps neighbouring functions that do not mention each other."""
    chunks = _chunks(source)
    pairs = [
        i
        for i in range(len(chunks) - 1)
        if (one := _function(chunks[i]))
        and (two := _function(chunks[i + 1]))
        and not re.search(rf"\b{one}\b", chunks[i + 1])
        and not re.search(rf"\b{two}\b", chunks[i])
    ]
    if not pairs:
        return None
    i = draw.choice(pairs)
    chunks[i], chunks[i + 1] = chunks[i + 1], chunks[i]
    return "\n\n".join(chunks) + "\n"


def respace(source: str, entry: str, draw: random.Random) -> str | None:
    """Puts comments between tokens."""
    pieces = []
    for kind, text in _tokens(source):
        pieces.append(text)
        if kind == "space" and "\n" not in text and draw.random() < 0.1:
            pieces.append("/* */ ")
    changed = "".join(pieces)
    return changed if changed != source else None


HIP: Mapping[str, Callable[[str, str, random.Random], str | None]] = {
    "rename": rename_names,
    "alias": alias,
    "respell": respell,
    "reorder": reorder,
    "respace": respace,
}


def _tokens(source: str) -> list[tuple[str, str]]:
    return [(str(m.lastgroup), m.group()) for m in _TOKEN.finditer(source)]


def _own_names(source: str, entry: str) -> list[str]:
    """Names that the source defines, and that stand nowhere but in plain code."""
    tokens = _tokens(source)
    code = "".join(text if kind != "comment" else " " for kind, text in tokens)
    defined = set(_DEFINED.findall(code)) - _KEPT - {entry}
    elsewhere = " ".join(text for kind, text in tokens if kind in ("line", "text"))
    members = set(re.findall(r"(?:\.|->|::)\s*(\w+)", code))
    return sorted(n for n in defined - members if not re.search(rf"\b{n}\b", elsewhere))


def _replaced(source: str, names: Mapping[str, str]) -> str:
    return "".join(
        names.get(text, text) if kind == "word" else text for kind, text in _tokens(source)
    )


def _fresh(source: str, draw: random.Random) -> str:
    while (name := f"n{draw.getrandbits(40):010x}") in source:
        pass
    return name


def _chunks(source: str) -> list[str]:
    """The parts between empty lines outside of braces."""
    depth, parts = 0, [""]
    for kind, text in _tokens(source):
        depth += (text == "{") - (text == "}") if kind == "mark" else 0
        if kind == "space" and text.count("\n") > 1 and depth == 0:
            parts.append("")
        else:
            parts[-1] += text
    return [part for part in parts if part.strip()]


def _function(chunk: str) -> str | None:
    """The name of the one function that a part defines."""
    names = re.findall(r"^(?:__global__|__device__|static)[^;={()]*?\b(\w+)\s*\(", chunk, re.M)
    whole = chunk.count("{") == chunk.count("}") and "#" not in chunk and "extern" not in chunk
    return names[0] if len(names) == 1 and whole else None
