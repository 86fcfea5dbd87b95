"""Variants: complete kernels of a problem, with constants that a schedule search may choose.

A problem's `variants/` folder holds one file per structure (one pass, in blocks, ...). Each file is
a complete submission. A line such as

    WARPS = 4  # of 1 2 4 8

means that the constant may take any of these values. Constants without the comment are fixed.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kernel_gym.tasks.problem import Problem

_CHOICE = re.compile(r"^([A-Z][A-Z0-9_]*) = \d+  # of ([\d ]+)$", re.MULTILINE)


@dataclass(frozen=True)
class Variant:
    """One complete kernel: a structure with the values of its constants."""

    problem: str
    structure: str
    schedule: Mapping[str, int]
    source: str


@dataclass(frozen=True)
class KernelTemplate:
    r"""A kernel with constants that are not chosen yet.

    Example:
        >>> template = KernelTemplate("softmax", "one_pass", "WARPS = 1  # of 1 2\n")
        >>> [variant.source for variant in template.variants()]
        ['WARPS = 1\n', 'WARPS = 2\n']
    """

    problem: str
    structure: str
    text: str

    @property
    def space(self) -> dict[str, tuple[int, ...]]:
        """The possible values of each constant, in the order of the text."""
        choices = _CHOICE.findall(self.text)
        return {name: tuple(map(int, values.split())) for name, values in choices}

    def variant(self, schedule: Mapping[str, int]) -> Variant:
        """Returns the kernel with these values."""
        text = _CHOICE.sub(lambda match: f"{match[1]} = {schedule[match[1]]}", self.text)
        return Variant(self.problem, self.structure, dict(schedule), text)

    def variants(self) -> Iterator[Variant]:
        """Yields the kernel of every combination of values."""
        space = self.space
        for values in itertools.product(*space.values()):
            yield self.variant(dict(zip(space, values, strict=True)))


def templates(problem: Problem) -> tuple[KernelTemplate, ...]:
    """Returns the templates of a problem by name; none if it has no `variants/` folder."""
    if problem.folder is None:
        return ()
    paths = sorted((problem.folder / "variants").glob("*.py"))
    return tuple(KernelTemplate(problem.name, p.stem, p.read_text(encoding="utf-8")) for p in paths)


def variants(problem: Problem) -> tuple[Variant, ...]:
    """Returns all kernels of a problem's templates."""
    return tuple(variant for template in templates(problem) for variant in template.variants())
