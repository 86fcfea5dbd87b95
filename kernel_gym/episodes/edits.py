"""Edits: replies that change a kernel instead of writing it anew.

A reply may hold blocks of text to find and text to put in its place, the format that aider and
AlphaEvolve (Novikov et al., 2025) have models write:

    | <<<<<<< SEARCH
    | BLOCK=256
    | =======
    | BLOCK=4096, num_warps=8
    | >>>>>>> REPLACE

The bars are not part of it: they keep doctest from reading the last line. What is searched for must
occur once; an edit that ends with `REPLACE ALL`, our addition, is made wherever it occurs, if it
does. Edits are applied to the fastest kernel of the episode that passed, at first to the task's
start kernel. So a policy may improve kernels that it could not write.
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

from kernel_gym.devices import describe
from kernel_gym.episodes.episode import Episode
from kernel_gym.episodes.reply import extract_source
from kernel_gym.episodes.rewrites import FORM, REWRITES
from kernel_gym.judge.protocol import MAX_SOURCE_BYTES
from kernel_gym.records import Outcome
from kernel_gym.tasks.problem import Scale

_SEARCH = re.compile(r"^<<<<<<< SEARCH\n", re.MULTILINE)
_MIDDLE = "\n=======\n"
_REPLACE = re.compile(r"\n?>>>>>>> REPLACE( ALL)?$", re.MULTILINE)
_LAUNCH = re.compile(r"\bBLOCK=\d+(?:, num_warps=\d+)?(?=[,)\s])")

STARTS = 48
"""Starts from which each drawn schedule is reached."""


@dataclass(frozen=True)
class Space:
    """The numbers that a launch may be given, and the rewrites that its kernel may have."""

    blocks: tuple[int, ...]
    warps: tuple[int, ...]
    rewrites: tuple[str, ...] = ("shaped",)


SIMULATED = Space((64, 128, 256, 512, 1024, 2048, 4096, 8192), (1, 2, 4, 8, 16))
"""Rows are short on a simulator, and a long block takes it long."""
MEASURED = Space((128, 256, 512, 1024, 2048, 4096, 8192, 16384), (4, 8, 16), tuple(REWRITES))
"""Rows are long. Sixteen warps of 64 lanes are the most that a workgroup of an AMD GPU has."""
SPACES = {Scale.SIM: SIMULATED, Scale.FULL: MEASURED}
"""By the scale of a device's workloads."""


class EditError(ValueError):
    """An edit does not apply; the message says which and why."""


@dataclass(frozen=True)
class Edit:
    """A change of a launch, as a reply, with what it leads to."""

    start: str
    reply: str
    source: str
    schedule: dict[str, int]


def apply_edits(source: str, reply: str) -> str:
    r"""Applies the edits in a reply, one after the other.

    Args:
        source: What is changed.
        reply: Text with one edit or more.

    Returns:
        The changed source.

    Raises:
        EditError: A text to replace once does not occur exactly once, or the result is longer than
            any source may be.

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
    """Each edit in a reply: what to find, what to put in its place, whether everywhere.

    A reply is untrusted: where no end is left for an edit, nothing behind it is tried.
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
    """The source that a reply submits: the one it holds, or the one that its edits lead to.

    Args:
        episode: What the edits apply to: its fastest kernel that passed, or the start kernel.
        reply: What a policy wrote.

    Returns:
        The source. Edits that do not apply are submitted as they are, below a comment that says
        why: they do not compile, and whoever reads the submission learns the reason.
    """
    if next(_edits(reply), None) is None:
        return extract_source(reply, episode.task)
    try:
        return apply_edits(editable(episode), reply)
    except EditError as error:
        return f"# {error}\n{reply}"


def editable(episode: Episode) -> str:
    """What edits apply to: the fastest kernel that passed, or the start; "" without one."""
    right = [turn for turn in episode.turns if turn.evaluation.outcome is Outcome.PASSED]
    best = max(right, key=lambda turn: turn.evaluation.speedup or 0.0, default=None)
    return best.source if best else episode.start or episode.task.start_source or ""


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


def space_of(device: str) -> Space:
    """The numbers for launches on a device."""
    return SPACES[describe(device).scale]


def choices(source: str, space: Space) -> dict[str, tuple[int, ...]]:
    """What may be chosen for a launch: block size, warps, and whether each rewrite is made.

    Args:
        source: A Triton kernel whose launch has a literal `BLOCK=NUMBER`, once.
        space: The numbers.

    Returns:
        The values by name; none without such a launch, or where it names its warps elsewhere.
    """
    found = _LAUNCH.findall(source)
    if len(found) != 1 or source.count(found[0]) != 1:
        return {}
    if source.count("num_warps=") != found[0].count("num_warps="):
        return {}
    rewrites = {name: (0, 1) if _applies(source, name) else (0,) for name in space.rewrites}
    return {"BLOCK": space.blocks, "num_warps": space.warps, **rewrites}


def edit_launch(source: str, schedule: Mapping[str, int]) -> Edit:
    """The edit that gives a launch a schedule.

    Args:
        source: As for :func:`choices`.
        schedule: One of the choices for each name.

    Returns:
        The edit.
    """
    launch = "BLOCK={BLOCK}, num_warps={num_warps}".format_map(schedule)
    reply = FORM.format(_LAUNCH.findall(source)[0], launch, "")
    reply += "".join(edits * schedule.get(name, 0) for name, edits in REWRITES.items())
    return Edit(source, reply, apply_edits(source, reply), dict(schedule))


def _applies(source: str, rewrite: str) -> bool:
    """Whether a rewrite can be made, and changes anything."""
    try:
        return apply_edits(source, REWRITES[rewrite]) != source
    except EditError:
        return False


def varied_starts(source: str, space: Space) -> list[str]:
    """A kernel as it would start with each block size, each edit of which is one of its own.

    Args:
        source: As for :func:`choices`.
        space: The same.

    Returns:
        The sources; none where there is no such launch.
    """
    blocks = choices(source, space).get("BLOCK", ())
    return [_LAUNCH.sub(f"BLOCK={block}", source) for block in blocks]


def draw_edits(source: str, count: int, seed: int | str, space: Space) -> list[list[Edit]]:
    """Edits to schedules drawn at random, each from several starts.

    Each choice comes as often as any other for the same name, within one, so that whoever imitates
    them prefers none by chance.

    The first edits the source itself, the others edit it with another block size and other names of
    its kernel and grid, so that whoever imitates them learns to read what there is to replace, and
    that names do not matter.

    Args:
        source: As for :func:`choices`.
        count: Schedules drawn; one that is drawn again is left out.
        seed: What is drawn from.
        space: As for :func:`choices`.

    Returns:
        For each schedule, :data:`STARTS` edits that lead to the same kernel.
    """
    draw = random.Random(seed)
    drawn = {name: _evenly(values, count, draw) for name, values in choices(source, space).items()}
    schedules = dict.fromkeys(zip(*drawn.values(), strict=True))
    found = []
    for values in schedules:
        schedule = dict(zip(drawn, values, strict=True))
        blocks = draw.choices(space.blocks, k=STARTS - 1)
        others = [_renamed(_LAUNCH.sub(f"BLOCK={block}", source), draw) for block in blocks]
        found.append([edit_launch(start, schedule) for start in (source, *others)])
    return found


def _evenly(values: Sequence[int], count: int, draw: random.Random) -> list[int]:
    """So many of the values in a random order, each as often as any other, within one."""
    rounds = [draw.sample(values, len(values)) for _ in range(-(-count // len(values)))]
    return list(itertools.chain(*rounds))[:count]


def _renamed(source: str, draw: random.Random) -> str:
    """The source with another name of its kernel and, in two of three, another grid."""
    grid = draw.choice([r"\1", f"{_name(draw)},", f"{_name(draw)} * {_name(draw)},"])
    return re.sub(r"\w+\[\(([^\n]*)\)\]\(", rf"{_name(draw)}[({grid})](", source)


def _name(draw: random.Random) -> str:
    """One to four words of two to eight letters, and no keyword of Python."""
    words = ("".join(draw.choices(ascii_lowercase, k=draw.randint(2, 8))) for _ in range(4))
    name = "_".join(itertools.islice(words, draw.randint(1, 4)))
    return _name(draw) if iskeyword(name) else name
