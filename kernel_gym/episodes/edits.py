"""Edits: replies that change a kernel instead of writing all of it.

A reply may contain blocks with a text to find and the text to replace it with. Aider and
AlphaEvolve (Novikov et al., 2025) use the same format:

    | <<<<<<< SEARCH
    | BLOCK=256
    | =======
    | BLOCK=4096, num_warps=8
    | >>>>>>> REPLACE

The bars are not part of the format: they keep doctest from reading the last line. The text to find
must occur exactly once. An edit that ends with `REPLACE ALL`, which this project adds, is made at
every occurrence, if there is any. Edits apply to the best correct kernel of the episode, and before
there is one to the task's start kernel. So a policy can improve kernels that it could not write.
"""

from __future__ import annotations

import ast
import itertools
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from keyword import iskeyword
from string import ascii_lowercase

from kernel_gym.devices import backend_of, resolve
from kernel_gym.episodes.episode import Episode
from kernel_gym.episodes.reply import extract_source
from kernel_gym.episodes.rewrites import FORM, REWRITES
from kernel_gym.judge.protocol import MAX_SOURCE_BYTES

_SEARCH = re.compile(r"^<<<<<<< SEARCH\n", re.MULTILINE)
_MIDDLE = "\n=======\n"
_REPLACE = re.compile(r"\n?>>>>>>> REPLACE( ALL)?$", re.MULTILINE)
_LAUNCH = re.compile(r"\bBLOCK=\d+(?:, num_warps=\d+)?(?=[,)\s])")

STARTS = 48
"""Number of start kernels from which the corpus reaches each drawn schedule."""


@dataclass(frozen=True)
class EditSpace:
    """The numbers that a launch may have, and the rewrites that its kernel may have.

    Attributes:
        blocks: Block sizes, in elements.
        warps: Numbers of warps.
        rewrites: Names in :data:`~kernel_gym.episodes.rewrites.REWRITES`.
    """

    blocks: tuple[int, ...]
    warps: tuple[int, ...]
    rewrites: tuple[str, ...] = ("shaped",)


SIMULATED = EditSpace((64, 128, 256, 512, 1024, 2048, 4096, 8192), (1, 2, 4, 8, 16))
"""The space for simulated devices, where rows are short and long blocks are slow to simulate."""
MEASURED = EditSpace((128, 256, 512, 1024, 2048, 4096, 8192, 16384), (4, 8, 16), tuple(REWRITES))
"""The space for GPUs, where rows are long. A workgroup of an AMD GPU has at most 16 warps of 64
lanes."""


class EditError(ValueError):
    """An edit does not apply; the message says which one and why."""


@dataclass(frozen=True)
class Edit:
    """A change of a launch.

    Attributes:
        start: The source before it.
        reply: The change in the format of edits.
        source: The source after it.
        schedule: The choices that it makes, by name.
    """

    start: str
    reply: str
    source: str
    schedule: dict[str, int]


def apply_edits(source: str, reply: str) -> str:
    r"""Applies the edits of a reply in order.

    Args:
        source: The source to change.
        reply: Text with at least one edit.

    Returns:
        The changed source.

    Raises:
        EditError: A text that must occur exactly once does not, or the result is longer than
            `MAX_SOURCE_BYTES`.

    Example:
        >>> apply_edits("f(B=1)\n", "<<<<<<< SEARCH\nB=1\n=======\nB=2\n>>>>>>> REPLACE\n")
        'f(B=2)\n'
    """
    for number, (old, new, every) in enumerate(_edits(reply), start=1):
        count = source.count(old)
        if count != 1 and not every:
            raise EditError(f"edit {number}: {old[:60]!r} occurs {count} times, expected once")
        if len(source) + count * (len(new) - len(old)) > MAX_SOURCE_BYTES:
            raise EditError(f"edit {number}: the source becomes longer than any may be")
        source = source.replace(old, new)
    return source


def _edits(reply: str) -> Iterator[tuple[str, str, bool]]:
    """Yields each edit: the text to find, its replacement, whether to replace all occurrences.

    A reply is untrusted. At the first edit without an end the search stops, so that it takes
    linear time.
    """
    at = 0
    while begin := _SEARCH.search(reply, at):
        middle = reply.find(_MIDDLE, begin.end())
        end = _REPLACE.search(reply, middle + len(_MIDDLE)) if middle >= 0 else None
        if end is None:
            return
        new = reply[middle + len(_MIDDLE) : end.start()]
        yield reply[begin.end() : middle], new, end.group(1) is not None
        at = end.end()


def submission(episode: Episode, reply: str) -> str:
    """The source that a reply submits: the one in it, or the result of its edits.

    Args:
        episode: The edits apply to its best correct kernel, or to the start kernel.
        reply: The policy's text.

    Returns:
        The source. If an edit does not apply, it is the reply below a comment that gives the
        reason: it does not compile, and the policy can read why.
    """
    if next(_edits(reply), None) is None:
        return extract_source(reply, episode.task)
    try:
        return apply_edits(editable(episode), reply)
    except EditError as error:
        return f"# {error}\n{reply}"


def editable(episode: Episode) -> str:
    """The source that edits apply to: the best submission, or the start kernel, or ""."""
    if episode.best:
        return episode.best.source
    return episode.start or episode.task.start_source or ""


def launches(source: str) -> list[str]:
    """The kernel launches in a Triton module, without their positional arguments.

    Args:
        source: Python source.

    Returns:
        `kernel[grid](..., NAME=value)` for each launch; none if the source is malformed.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []
    calls = []
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Subscript):
            call.args = [ast.Constant(...)] if call.args else []
            calls.append(ast.unparse(call))
    return calls


def space_of(device: str) -> EditSpace:
    """The numbers for launches on a device."""
    name = resolve(device) if device == "auto" else device  # others need not be present
    return MEASURED if backend_of(name).full_size else SIMULATED


def choices(source: str, space: EditSpace) -> dict[str, tuple[int, ...]]:
    """The choices for a launch: block size, warps, and whether each rewrite is made.

    Args:
        source: A Triton kernel whose only launch has a literal `BLOCK=NUMBER`.
        space: The numbers that a launch may have.

    Returns:
        The values to choose from, by name. It is empty if there is no such launch, or if the
        source sets `num_warps` somewhere else.
    """
    matches = _LAUNCH.findall(source)
    if len(matches) != 1 or source.count(matches[0]) != 1:
        return {}
    if source.count("num_warps=") != matches[0].count("num_warps="):
        return {}
    rewrites = {name: (0, 1) if _applies(source, name) else (0,) for name in space.rewrites}
    return {"BLOCK": space.blocks, "num_warps": space.warps, **rewrites}


def edit_launch(source: str, schedule: Mapping[str, int]) -> Edit:
    """The edit that gives a launch a schedule.

    Args:
        source: As for :func:`choices`.
        schedule: One of the choices for each name.
    """
    launch = "BLOCK={BLOCK}, num_warps={num_warps}".format_map(schedule)
    reply = FORM.format(_LAUNCH.findall(source)[0], launch, "")
    reply += "".join(edits * schedule.get(name, 0) for name, edits in REWRITES.items())
    return Edit(source, reply, apply_edits(source, reply), dict(schedule))


def _applies(source: str, rewrite: str) -> bool:
    """Whether a rewrite applies to a source, changes it and leaves it Python.

    A launch whose other arguments are named too has a form that `shaped` cannot rewrite.
    """
    try:
        changed = apply_edits(source, REWRITES[rewrite])
        ast.parse(changed)
    except (EditError, SyntaxError):
        return False
    return changed != source


def varied_starts(source: str, space: EditSpace) -> list[str]:
    """A kernel with each block size in its launch, as start kernels of different episodes.

    Args:
        source: As for :func:`choices`.
        space: As for :func:`choices`.

    Returns:
        The sources; none if there is no launch with a literal block size.
    """
    blocks = choices(source, space).get("BLOCK", ())
    return [_LAUNCH.sub(f"BLOCK={block}", source) for block in blocks]


def draw_edits(source: str, count: int, seed: int | str, space: EditSpace) -> list[list[Edit]]:
    """Edits to schedules drawn at random, each from several start kernels.

    The counts of the values of one choice differ by at most one, so that a policy that imitates
    the edits has no accidental preference.

    The first edit of a schedule starts from the source itself. The others start from it with
    another block size and other names of its kernel and grid, so that a policy learns to read the
    text to replace and to ignore names.

    Args:
        source: As for :func:`choices`.
        count: Number of schedules drawn; duplicates are dropped.
        seed: Seed of the draws.
        space: As for :func:`choices`.

    Returns:
        For each schedule, :data:`STARTS` edits that reach it.
    """
    draw = random.Random(seed)
    drawn = {name: _evenly(values, count, draw) for name, values in choices(source, space).items()}
    schedules = dict.fromkeys(zip(*drawn.values(), strict=True))
    edits = []
    for values in schedules:
        schedule = dict(zip(drawn, values, strict=True))
        blocks = draw.choices(space.blocks, k=STARTS - 1)
        others = [_renamed(_LAUNCH.sub(f"BLOCK={block}", source), draw) for block in blocks]
        edits.append([edit_launch(start, schedule) for start in (source, *others)])
    return edits


def _evenly(values: Sequence[int], count: int, draw: random.Random) -> list[int]:
    """`count` of the values in a random order; their frequencies differ by at most one."""
    rounds = [draw.sample(values, len(values)) for _ in range(-(-count // len(values)))]
    return list(itertools.chain(*rounds))[:count]


def _renamed(source: str, draw: random.Random) -> str:
    """The source with another kernel name and, in two of three cases, another grid."""
    grid = draw.choice([r"\1", f"{_name(draw)},", f"{_name(draw)} * {_name(draw)},"])
    return re.sub(r"\w+\[\(([^\n]*)\)\]\(", rf"{_name(draw)}[({grid})](", source)


def _name(draw: random.Random) -> str:
    """One to four words of two to eight letters each; never a keyword of Python."""
    words = ("".join(draw.choices(ascii_lowercase, k=draw.randint(2, 8))) for _ in range(4))
    name = "_".join(itertools.islice(words, draw.randint(1, 4)))
    return _name(draw) if iskeyword(name) else name
