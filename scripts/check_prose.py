"""Checks documentation, docstrings and comments for phrases that are hard to read.

The phrases are in `prose.toml` beside this file, each with what to write instead. A line that must
keep a phrase is listed there with a reason.

    python scripts/check_prose.py [PATH...]
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RULES = tomllib.loads(Path(__file__).with_name("prose.toml").read_text(encoding="utf-8"))
CPP = {".cpp", ".h", ".inc"}


@dataclass(frozen=True)
class Phrase:
    """A phrase to avoid, and the advice that is printed with it."""

    pattern: re.Pattern[str]
    advice: str


PHRASES = [Phrase(re.compile(rule["pattern"]), rule["advice"]) for rule in RULES["phrase"]]
DOCSTRINGS = [Phrase(re.compile(rule["pattern"]), rule["advice"]) for rule in RULES["docstring"]]
NAMES = [Phrase(re.compile(rule["pattern"]), rule["advice"]) for rule in RULES["name"]]
SKIPPED = tuple(RULES["skip"])


def main(arguments: list[str]) -> int:
    """Prints each finding as `path:line: text: advice`; the exit code is 1 if there is any."""
    findings = [finding for path in _files(arguments) for finding in check(path)]
    print("\n".join(findings) or "No phrases to avoid.")
    return 1 if findings else 0


def check(path: Path) -> Iterator[str]:
    """Yields the findings of one file."""
    text = path.read_text(encoding="utf-8")
    where = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    for line, prose in prose_of(path.suffix, text):
        for phrase in PHRASES:
            for match in phrase.pattern.finditer(prose):
                at = line + prose[: match.start()].count("\n")
                yield f"{where}:{at}: {match.group().strip()!r}: {phrase.advice}"
    if path.suffix == ".py":
        yield from _first(DOCSTRINGS, where, docstrings(text))
        yield from _first(NAMES, where, enumerate(text.splitlines(), 1))


def _first(phrases: list[Phrase], where: Path, pieces: Iterable[tuple[int, str]]) -> Iterator[str]:
    """Yields the first finding of each phrase in each piece of text."""
    for number, piece in pieces:
        for phrase in phrases:
            if match := phrase.pattern.search(piece):
                yield f"{where}:{number}: {match.group().strip()!r}: {phrase.advice}"


def prose_of(suffix: str, text: str) -> Iterator[tuple[int, str]]:
    """Yields first line and text of each piece of prose: pages, docstrings, comments."""
    if suffix == ".md":
        yield from _markdown(text)
    elif suffix in CPP:
        for number, line in enumerate(text.splitlines(), 1):
            if "//" in line:
                yield number, line.partition("//")[2]
    elif suffix == ".py":
        yield from _python(text)


def _markdown(text: str) -> Iterator[tuple[int, str]]:
    """Yields lines without code blocks, inline code and targets of links."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            shown = re.sub(r"\]\([^)]*\)|^\[[^]]*\]: .*", "", line)
            yield number, re.sub(r"`[^`]*`", "`code`", shown)


def _python(text: str) -> Iterator[tuple[int, str]]:
    yield from docstrings(text)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def docstrings(text: str) -> Iterator[tuple[int, str]]:
    """Yields first line and text of each docstring, also of those of variables."""
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", [])
        for child in body if isinstance(body, list) else []:
            value = getattr(child, "value", None) if isinstance(child, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield value.lineno, value.value


def _files(arguments: list[str]) -> list[Path]:
    """Returns the files named, or all that git tracks, without those that are skipped."""
    if arguments:
        return [Path(argument).resolve() for argument in arguments]
    command = ["git", "-C", str(ROOT), "ls-files", "*.md", "*.py", "*.cpp", "*.h", "*.inc"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\n")
    kept = [name for name in listed if name and not name.startswith(SKIPPED)]
    return [ROOT / name for name in kept if not (ROOT / name).is_symlink()]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
