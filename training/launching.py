"""Launches of Triton kernels that pass over rows block by block, and the edits of them.

An edit chooses four things: the block's size and the number of warps; whether the block is no wider
than a row (`BLOCK=min(4096, triton.next_power_of_2(cols))`); and whether the kernel is compiled for
the length of its rows (`tl.constexpr(cols)`). Then a loop that takes one step is none, and what it
read is not read again.
"""

from __future__ import annotations

import ast
import itertools
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_lowercase

from kernel_gym.training.edits import apply_edits, edit_text

_LAUNCH = re.compile(r"\bBLOCK=\d+(?:, num_warps=\d+)?(?=[,)\s])")
_LENGTH = re.compile(r"\b(stride\(\d\)),\s+(\w+)\b(?![.(])")

BLOCKS = (64, 128, 256, 512, 1024, 2048, 4096, 8192)
WARPS = (1, 2, 4, 8, 16)
STARTS = 48
"""Starts from which each drawn schedule is reached."""


@dataclass(frozen=True)
class Edit:
    """A change of a launch, as a reply, with what it leads to."""

    start: str
    reply: str
    source: str
    schedule: dict[str, int]


def launches(source: str) -> list[str]:
    """The calls of a Triton module that launch kernels, without their positional arguments.

    Args:
        source: Python.

    Returns:
        `kernel[grid](..., NAME=value)` for each; none where the source is malformed.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []
    found = []
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Subscript):
            call.args = [ast.Constant(...)] if call.args else []
            found.append(ast.unparse(call))
    return found


def row_length(source: str) -> str:
    """The argument of a launch that says how long a row is: the one behind its last stride.

    Args:
        source: A Triton module.

    Returns:
        Its name; "" where there is none or more than one.
    """
    return _length(source)[1]


def _length(source: str) -> tuple[str, str]:
    """The last stride of a launch and the name behind it."""
    found: list[tuple[str, str]] = _LENGTH.findall(source)
    return found[0] if len(found) == 1 else ("", "")


def launch_edits(source: str) -> list[Edit]:
    """Every edit of a launch.

    Args:
        source: A Triton kernel whose launch has a literal `BLOCK=NUMBER`, once.

    Returns:
        One edit a schedule; none where there is no such launch. Only where the length of a row is
        found are there edits that use it.
    """
    found = _LAUNCH.findall(source)
    if len(found) != 1 or source.count(found[0]) != 1:
        return []
    use = (0, 1) if row_length(source) else (0,)
    return [_edit(source, *chosen) for chosen in itertools.product(use, use, BLOCKS, WARPS)]


def _edit(source: str, fit: int, constant: int, block: int, warps: int) -> Edit:
    (launch,), (stride, length) = _LAUNCH.findall(source), _length(source)
    size = f"min({block}, triton.next_power_of_2({length}))" if fit else block
    reply = edit_text(launch, f"BLOCK={size}, num_warps={warps}")
    if constant:
        reply += edit_text(f"{stride}, {length}", f"{stride}, tl.constexpr({length})")
    schedule = {"fit": fit, "constant": constant, "block": block, "warps": warps}
    return Edit(source, reply, apply_edits(source, reply), schedule)


def varied_starts(source: str) -> list[str]:
    """A kernel as it would start with each of :data:`BLOCKS`, each edit of which is one of its own.

    Args:
        source: As for :func:`launch_edits`.

    Returns:
        The sources; none where there is no such launch.
    """
    if not launch_edits(source):
        return []
    return [_LAUNCH.sub(f"BLOCK={block}", source) for block in BLOCKS]


def draw_edits(source: str, count: int, seed: int | str, words: Sequence[str]) -> list[list[Edit]]:
    """Edits to schedules drawn at random, each from several starts.

    The first edits the source itself, the others edit it with another block size and other names of
    its kernel and of a row's length, so that whoever imitates them learns to read what there is to
    replace, and that the rest does not matter.

    Args:
        source: As for :func:`launch_edits`.
        count: Schedules drawn, at most.
        seed: What is drawn from.
        words: Names for a row's length.

    Returns:
        For each schedule, :data:`STARTS` edits that lead to the same kernel, but for names.
    """
    draw = random.Random(seed)
    edits = launch_edits(source)
    found = []
    for edit in draw.sample(edits, min(count, len(edits))):
        blocks = draw.choices(BLOCKS, k=STARTS - 1)
        others = [_renamed(_LAUNCH.sub(f"BLOCK={block}", source), words, draw) for block in blocks]
        found.append([edit, *(_edit(other, **edit.schedule) for other in others)])
    return found


def _renamed(source: str, words: Sequence[str], draw: random.Random) -> str:
    """The source with another name of its kernel, two to four words, and of a row's length."""
    letters = ("".join(draw.choices(ascii_lowercase, k=draw.randint(2, 8))) for _ in range(4))
    name = "_".join(itertools.islice(letters, draw.randint(2, 4)))
    source = re.sub(r"\w+(?=\[[^\n]*\]\()", name, source)
    length = row_length(source)
    if not length:
        return source
    other = draw.choice([word for word in words if word == length or word not in source])
    return re.sub(rf"(?<!\.)\b{length}\b", other, source)
