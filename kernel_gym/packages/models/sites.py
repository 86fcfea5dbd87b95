"""Places of a model where a package's operator can run, each of which can be put back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from torch import nn

from kernel_gym.packages.models.pretrained import PretrainedModel
from kernel_gym.packages.models.report import Site
from kernel_gym.packages.models.trace import TracedModule, function_name

Matches = list[tuple[TracedModule, frozenset[str]]]
"""TracedModule modules, each with the operators of the operation that ran there."""


@dataclass
class Replaced:
    """A model in which some places can run the package's operator or the original.

    Attributes:
        model: The model, with the original in place.
        sites: What was found.
        turn_on: Functions that put the package in place.
        turn_off: Functions that put the original back.
        layers: Single modules that are replaced, each with its layer's forward method.
        fused: Whether the original has the operation inside a larger fused operator, so that its
            own time is unknown.
    """

    model: PretrainedModel
    sites: list[Site] = field(default_factory=list)
    turn_on: list[Callable[[], None]] = field(default_factory=list)
    turn_off: list[Callable[[], None]] = field(default_factory=list)
    layers: dict[nn.Module, Callable[..., object]] = field(default_factory=dict)
    fused: bool = False

    @contextmanager
    def package(self) -> Iterator[PretrainedModel]:
        """Runs the package's operator inside."""
        for act in self.turn_on:
            act()
        try:
            yield self.model
        finally:
            for act in self.turn_off:
                act()


def site_of(sites: list[TracedModule], operators: frozenset[str], **values: str) -> Site:
    """Returns a site with its place; the values say what replaced it, or why nothing did."""
    kind = type(sites[0].module)
    name = kind.__name__ if kind.__name__ != "Func" else function_name(sites[0].module)
    paths = tuple(dict.fromkeys(one.path for one in sites))
    return Site(kind=name, modules=paths, operators=tuple(sorted(operators)), **values)


def swap(replaced: Replaced, forwards: Sequence[tuple[nn.Module, Callable[..., object]]]) -> None:
    """Prepares forward methods of single modules, which hide those of their classes."""

    def on() -> None:
        for module, forward in forwards:
            module.__dict__["forward"] = forward

    def off() -> None:
        for module, _ in forwards:
            module.__dict__.pop("forward", None)

    replaced.turn_on.append(on)
    replaced.turn_off.append(off)
    replaced.layers |= dict(forwards)
