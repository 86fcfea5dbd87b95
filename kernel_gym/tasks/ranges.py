"""Ranges: which magnitudes of a problem's inputs are legal, as prompts say it and as it is drawn.

A problem states its ranges in `ranges.toml`, beside `problem.py`:

    # Why the reach is below the end of the type.
    reach = 1000.0      # the magnitude that `draw` reaches; without the file it is the type's end
    spreads = 1000      # the largest mean in standard deviations; 0: no such data

    unwritten = ["place"]   # tensors into which the menu of special values writes nothing
    whole = ["target"]      # floating-point tensors of whole numbers: no small values in them
    apart = ["b", "c"]      # tensors of which one at a time is drawn from its whole range

    [ranges]            # what each argument may hold; a floating-point tensor without a line: all
    weight = [-8.0, 8.0]

    [drawn]             # the same for tensors of which half is drawn from the whole range
    codes = [-2147483648, 2147483647]

    [excluded]          # entries of the menu of special values that are not legal, with the tensors
    zeros = ["weight"]

    [[contrasts]]       # a contrast beside those of each single tensor: tensors that are small
    small = ["a"]       # together, others from their whole range, and others without their signs
    far = ["b"]
    positive = ["a", "b", "c"]

One adversarial workload has special values up to the reach, and the entries of the menu
(`kernel_gym/tasks/special_menu.py`); another one has a large mean, and a third one small values
and ends of ranges. The file is no part of the content that an admission verdict is
about: a range decides which values are drawn in addition, and no control passes by that.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kernel_gym.errors import InputError
from kernel_gym.tasks.problem import Problem, ScalarArg, TensorArg, Value
from kernel_gym.tasks.special_menu import (
    EXCLUSIONS,
    SpecialValue,
    menu_of,
    with_entries,
)
from kernel_gym.tasks.special_values import (
    EXTREMES,
    SHIFTED,
    is_far,
    replace_by_range,
    replace_by_rare,
    with_end,
)
from kernel_gym.tasks.workload import Magnitude, Split, Workload

FILE = "ranges.toml"
SPREADS = {torch.float64: 1000, torch.float32: 1000, torch.float16: 1000, torch.bfloat16: 64}
"""The largest mean in standard deviations by the narrowest input type. A bfloat16 has 8 bits: with
a larger mean its rows are constant."""
Range = tuple[int | float, int | float]


class RangesError(InputError, ValueError):
    """A file of ranges is malformed. The message names the file and the field."""


class StatedContrast(BaseModel):
    """A contrast that a problem states, since single tensors do not show what it shows.

    An argument may be hidden behind another one unless both are small, or cancel unless all signs
    agree.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    small: tuple[str, ...] = ()
    """Tensors with small values alone."""
    far: tuple[str, ...] = ()
    """Tensors of which half is drawn from the whole range."""
    positive: tuple[str, ...] = ()
    """Tensors without signs; they may be small or far, too."""

    @property
    def names(self) -> set[str]:
        """The tensors that it names."""
        return {*self.small, *self.far, *self.positive}

    def magnitudes(self) -> dict[str, Magnitude]:
        """Returns the magnitudes of the tensors that it names; others are as they are drawn."""
        signed = {
            **dict.fromkeys(self.small, Magnitude.SMALL),
            **dict.fromkeys(self.far, Magnitude.FAR),
        }
        without = {
            None: Magnitude.POSITIVE,
            Magnitude.SMALL: Magnitude.SMALL_POSITIVE,
            Magnitude.FAR: Magnitude.FAR_POSITIVE,
        }
        return signed | {name: without[signed.get(name)] for name in self.positive}


class Ranges(BaseModel):
    """The ranges of a problem's inputs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    reach: float = Field(default=0.0, ge=0)
    """The largest magnitude that `draw` returns for special values; 0: none are drawn."""
    spreads: float = Field(default=0.0, ge=0)
    """The largest mean of data in standard deviations; 0: no data with a large mean are drawn."""
    ranges: dict[str, Range] = {}
    """The least and the largest value of arguments; a floating-point tensor without it has all."""
    drawn: dict[str, Range] = {}
    """The same of tensors of which half is replaced by values of the range."""
    excluded: dict[SpecialValue, tuple[str, ...]] = {}
    """The tensors in which an entry of the menu of special values is not legal."""
    unwritten: tuple[str, ...] = ()
    """Tensors whose values depend on each other: `inputs` draws the entries of the menu, or none
    does."""
    whole: tuple[str, ...] = ()
    """Tensors of a floating-point type that hold whole numbers, such as 0 and 1: no small ones."""
    apart: tuple[str, ...] = ()
    """Tensors whose ends overflow together: a contrast draws one of them from its whole range, and
    a workload of tiny values has the ends of one of them."""
    contrasts: tuple[StatedContrast, ...] = ()
    """Contrasts beside those that are made for each tensor."""

    def limits(self, name: str) -> Range | None:
        """Returns the stated range of an argument; None if all finite values are legal."""
        return (self.ranges | self.drawn).get(name)

    def entries(self, arg: TensorArg) -> tuple[SpecialValue, ...]:
        """Returns the entries of the menu that are legal in a tensor.

        The largest finite value is none of them where the reach stops before it.
        """
        allowed = menu_of(arg, self.limits(arg.name))
        if arg.dtype.is_floating_point and self.reach < torch.finfo(arg.dtype).max:
            allowed = tuple(entry for entry in allowed if entry is not SpecialValue.LARGEST)
        return tuple(entry for entry in allowed if arg.name not in self.excluded.get(entry, ()))


def ranges_of(problem: Problem) -> Ranges:
    """Returns the ranges of a problem: those of its file, or all finite values of its types.

    A problem that a program made has no special values: its distributions were found by trial.

    Raises:
        RangesError: The file is malformed, or names what is no argument of the problem.
    """
    if not problem.special_values:
        return Ranges()
    path = problem.folder / FILE if problem.folder else None
    if path is None or not path.is_file():
        return _whole_types(problem)
    ranges = _read(path)
    barred = itertools.chain(
        ranges.unwritten,
        ranges.whole,
        ranges.apart,
        *ranges.excluded.values(),
        *(contrast.names for contrast in ranges.contrasts),
    )
    unknown = {*ranges.ranges, *ranges.drawn, *barred} - {arg.name for arg in problem.args}
    if unknown:
        raise RangesError(f"{path}: found {sorted(unknown)}, expected arguments of {problem.name}")
    return ranges


def special_distributions(problem: Problem) -> tuple[str, ...]:
    """Returns the names of the distributions of special values that a problem takes."""
    ranges = ranges_of(problem)
    names = []
    if ranges.reach:
        names.append(f"{EXTREMES} {ranges.reach!r}")
    if ranges.spreads:
        names.append(f"{SHIFTED} {ranges.spreads!r} {ranges.reach!r}")
    return tuple(names)


def widen(
    problem: Problem, workload: Workload, values: dict[str, Value], generator: torch.Generator
) -> dict[str, Value]:
    """Adds special values to the tensors of the extreme workload, and small ones to tiny ones.

    In the extreme workload half of each tensor that is drawn over its whole range is replaced. Then
    come the entries of the menu. In adversarial workloads with tiny values each tensor whose values
    are free gets small ones, and the ends of its range. Those of one distribution have an end in
    one tensor. Other workloads stay as they are, and so do tensors on "meta", which have no values.
    """
    if workload.split is Split.ADVERSARIAL and problem.special_values:
        if workload.distribution == "tiny":
            return _with_rare_values(problem, values, generator)
        if workload.distribution == _last_distribution(problem):
            return _with_end(problem, values, generator)
    if not workload.distribution.startswith(EXTREMES):
        return values
    replaced, ranges = dict(values), ranges_of(problem)
    for name, (low, high) in ranges.drawn.items():
        value = replaced[name]
        if isinstance(value, torch.Tensor):
            replaced[name] = replace_by_range(value, low, high, generator)
    for arg in _tensors(problem):
        value = replaced[arg.name]
        written = arg.name not in ranges.unwritten
        if written and isinstance(value, torch.Tensor) and not value.is_meta:
            limits = ranges.limits(arg.name)
            replaced[arg.name] = with_entries(value, ranges.entries(arg), limits)
    return replaced


def _with_rare_values(
    problem: Problem, values: dict[str, Value], generator: torch.Generator
) -> dict[str, Value]:
    """Returns values with small magnitudes and ends of ranges in tensors whose values are free.

    Of tensors whose ends overflow together, one has ends.
    """
    replaced, ranges = dict(values), ranges_of(problem)
    changed = {
        arg.name: value
        for arg in _tensors(problem)
        if is_wide(arg) and is_free(problem, arg)
        if isinstance(value := values[arg.name], torch.Tensor) and not value.is_meta
    }
    without = {name for name in changed if name in ranges.apart}
    if without:
        without.remove(_drawn_of(sorted(without), next(iter(changed.values())).device, generator))
    for name, value in changed.items():
        replaced[name] = replace_by_rare(
            value, ranges.limits(name), generator, with_ends=name not in without
        )
    return replaced


def _drawn_of(names: list[str], where: torch.device, generator: torch.Generator) -> str:
    """Draws one of the names."""
    return names[int(torch.randint(len(names), (), generator=generator, device=where))]


def _with_end(
    problem: Problem, values: dict[str, Value], generator: torch.Generator
) -> dict[str, Value]:
    """Returns values with an end of the range in one tensor of those that come nowhere near it.

    Two ends may overflow together. A tensor without zeros, such as scales, takes part in the tiny
    workload alone: its largest value belongs to small data.
    """
    ranges = ranges_of(problem)
    far: list[tuple[str, torch.Tensor, Range]] = []
    for arg in _tensors(problem):
        value, limits = values[arg.name], ranges.limits(arg.name)
        if limits is None or not limits[0] <= 0 <= limits[1] or not is_wide(arg):
            continue
        if isinstance(value, torch.Tensor) and is_free(problem, arg) and is_far(value, limits):
            far.append((arg.name, value, limits))
    if not far:
        return values
    name, value, limits = far[int(torch.randint(len(far), (), generator=generator))]
    return {**values, name: with_end(value, limits, generator)}


def is_wide(arg: TensorArg) -> bool:
    """Whether a tensor is of a floating-point type of at least two bytes."""
    return arg.dtype.is_floating_point and arg.dtype.itemsize > 1


def _last_distribution(problem: Problem) -> str:
    """Returns the distribution whose adversarial workloads hold ends: the last one by name."""
    return max((name for name in problem.distributions if name != "tiny"), default="")


def is_free(problem: Problem, arg: TensorArg) -> bool:
    """Whether a tensor's values do not depend on each other.

    They are free where the text states no more than ranges, and where the menu of special values
    writes single ones.
    """
    ranges = ranges_of(problem)
    if arg.name in (*ranges.unwritten, *ranges.whole):
        return False
    return problem.domain == Problem.domain or SpecialValue.SUBNORMAL in ranges.entries(arg)


def range_texts(problem: Problem) -> Iterator[str]:
    """Yields sentences for prompts: ranges of tensors, the largest mean, and what is excluded."""
    if not problem.special_values:
        return
    ranges = ranges_of(problem)
    stated = ranges.ranges | ranges.drawn
    parts = [
        f"`{arg.name}` {_words(arg, stated.get(arg.name))}"
        for arg in problem.args
        if arg.name in stated or (isinstance(arg, TensorArg) and arg.dtype.is_floating_point)
    ]
    if parts:
        yield f"Legal values: {', '.join(parts)}."
    if ranges.spreads:
        yield f"The mean of data may be {ranges.spreads:g} times their standard deviation."
    barred = [
        f"{EXCLUSIONS[entry]} in {', '.join(f'`{name}`' for name in names)}"
        for entry, names in ranges.excluded.items()
    ]
    if barred:
        yield f"Not legal, and never drawn: {'; '.join(barred)}."


def _words(arg: TensorArg | ScalarArg, limits: Range | None) -> str:
    if isinstance(arg, TensorArg):
        name = str(arg.dtype).removeprefix("torch.")
        if limits is None:
            return f"any finite {name}"
        if not arg.dtype.is_floating_point and limits == _ends(arg.dtype):
            return f"any {name}"
    low, high = (f"{end:g}" if isinstance(end, float) else f"{end}" for end in limits or (0, 0))
    return f"from {low} to {high}"


def _ends(dtype: torch.dtype) -> Range:
    info = torch.iinfo(dtype)
    return info.min, info.max


def _tensors(problem: Problem) -> list[TensorArg]:
    return [arg for arg in problem.args if isinstance(arg, TensorArg)]


@cache
def _read(path: Path) -> Ranges:
    try:
        return Ranges.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        raise RangesError(f"{path}: {error}") from error


def _whole_types(problem: Problem) -> Ranges:
    types = [arg.dtype for arg in _tensors(problem) if arg.dtype in SPREADS]
    if not types:
        return Ranges()
    narrowest = min(types, key=lambda dtype: (torch.finfo(dtype).max, SPREADS[dtype]))
    return Ranges(reach=torch.finfo(narrowest).max, spreads=SPREADS[narrowest])
