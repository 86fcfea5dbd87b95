"""Finds which sizes of a user's code can vary, in which steps, and one graph for all of them."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from kernel_gym.imports.authoring.request import FoundSizes, TracingRequest
from kernel_gym.imports.authoring.tracer import CodeError, Tracer
from kernel_gym.imports.traced.code import needed_nodes
from kernel_gym.imports.traced.graph import UNUSED, Construction, Traced, TracedGraph, is_random
from kernel_gym.imports.traced.template import (
    NodeTemplate,
    Unexplained,
    structure,
    unify,
    unify_values,
)

_NO_SIZES = re.compile(
    r"kernel|stride|pad|dilat|group|num_layers|layers|depth|reduction|scale|"
    r"^k$|top_?k|iterations|steps$"
)
"""Names of integers that say what to compute, not how much."""
_NEVER_SIZES = re.compile(r"kernel|stride|pad|dilat")
"""The same for sizes that a suite states."""
_MULTIPLES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_COARSER = (2, 4, 8)
_COMBINATIONS = 5
MIN_SIZE = 8
"""Smaller values of `dim` number a dimension and are no size."""
Sizes = dict[str, int]
AnyGraph = TypeVar("AnyGraph", TracedGraph, Construction)


@dataclass(frozen=True)
class FreeAxis:
    """A size that can vary: from `low` to `high` in steps of `multiple`.

    Its value upstream is `base`. Without a limit of the code `high` is four times as much.
    """

    name: str
    base: int
    low: int
    multiple: int
    high: int


@dataclass
class SizeSpace:
    """The code with its free sizes.

    Attributes:
        axes: The sizes that can vary.
        sizes: All sizes, with their values upstream.
        train: Whether a module is in training mode.
        traced: The trace at the values upstream.
        forward: The nodes of the forward pass for all sizes.
        construction: The nodes that make inputs and buffers for all sizes.
        notes: What a user should know.
    """

    axes: list[FreeAxis]
    sizes: Sizes
    train: bool
    traced: Traced
    forward: list[NodeTemplate]
    construction: list[NodeTemplate]
    how: dict[str, object]
    """`init` and `args`: how the original is constructed and called, for all sizes."""
    notes: list[str] = field(default_factory=list)


class Explorer:
    """Traces code at many sizes.

    Args:
        tracer: The confined process with the code.
        request: What to trace.
        found: Integers that may be sizes.
    """

    def __init__(self, tracer: Tracer, request: TracingRequest, found: FoundSizes) -> None:
        self._tracer = tracer
        self._found = found
        self._fixed = request.fixed
        self._stated = {name for point in request.points for name in point}
        self._base = dict(found.values)
        self._known: dict[tuple[tuple[str, int], ...], Traced | None] = {}
        self._train = True
        self.notes: list[str] = []

    def explore(self) -> SizeSpace:
        """Finds the free sizes.

        Raises:
            CodeError: The code cannot be traced, or draws random numbers.
        """
        base = self._first()
        axes: list[FreeAxis] = []
        unified = self._unify([], base)
        for axis in self._candidates(base):
            for tried in _coarser(axis):
                try:
                    unified = self._unify([*axes, tried], base)
                except (Unexplained, CodeError):
                    continue
                axes.append(tried)
                break
            else:
                self.notes.append(f"the size {axis.name} is fixed: the code does other work then")
        return SizeSpace(axes, self._base, self._train, base, *unified, self.notes)

    def without(self, space: SizeSpace, name: str) -> SizeSpace:
        """Returns a space in which a size is fixed."""
        axes = [axis for axis in space.axes if axis.name != name]
        assert len(axes) < len(space.axes), name
        self.notes.append(f"the size {name} is fixed: no shape of an input shows it")
        unified = self._unify(axes, space.traced)
        return SizeSpace(axes, self._base, self._train, space.traced, *unified, self.notes)

    def _first(self) -> Traced:
        """Traces at the sizes upstream, in evaluation mode if training mode is random."""
        base = _pruned(self._tracer.trace(self._base, True))
        if not (drawn := _random_operators(base)):
            return base
        self._train = False
        base = _pruned(self._tracer.trace(self._base, False))
        if still := _random_operators(base):
            raise CodeError(
                f"it draws random numbers ({', '.join(sorted(still))}): pass them as inputs"
            )
        self.notes.append(
            f"in evaluation mode: in training mode it draws random numbers "
            f"({', '.join(sorted(drawn))})"
        )
        return base

    def _candidates(self, base: Traced) -> Iterator[FreeAxis]:
        """Yields the sizes that alone can vary, the largest first."""
        for name, value in sorted(self._base.items(), key=lambda item: -item[1]):
            small = value < MIN_SIZE and name in ("dim", "axis")
            pattern = _NEVER_SIZES if name in self._stated else _NO_SIZES
            operation = bool(pattern.search(name))
            if name in self._fixed or small or value < 1 or operation:
                continue
            axis = self._axis(name, value, base)
            if axis is not None:
                yield axis

    def _axis(self, name: str, value: int, base: Traced) -> FreeAxis | None:
        for multiple in _MULTIPLES:
            if value % multiple or multiple > value:
                continue
            odd = (value // multiple) | 1
            tries = [odd * multiple, (odd + 2) * multiple, max(1, odd // 2 | 1) * multiple]
            if all(self._same(base, name, size) for size in tries):
                break
        else:
            return None
        changed = self._at({**self._base, name: tries[1]})
        if changed is None or _shapes(changed) == _shapes(base):
            return None
        for step in (1, 2, 3, 4, 8, 16):
            low = step * multiple
            if low > value:
                break
            if all(self._same(base, name, low + i * multiple) for i in range(3)):
                return FreeAxis(name, value, low, multiple, self._high(name, value, multiple, base))
        return None

    def _high(self, name: str, value: int, multiple: int, base: Traced) -> int:
        """Returns the largest size: a buffer, such as a mask, may end before others do."""
        if self._same(base, name, 4 * value - multiple):
            return 4 * value
        twice = 2 * value - multiple
        return twice if self._same(base, name, twice) else value

    def _same(self, base: Traced, name: str, size: int) -> bool:
        traced = self._at({**self._base, name: size})
        return traced is not None and _structure(traced) == _structure(base)

    def _at(self, sizes: Mapping[str, int]) -> Traced | None:
        key = tuple(sorted(sizes.items()))
        if key not in self._known:
            try:
                self._known[key] = _pruned(self._tracer.trace(sizes, self._train))
            except CodeError:
                self._known[key] = None
        return self._known[key]

    def _unify(
        self, axes: list[FreeAxis], base: Traced
    ) -> tuple[list[NodeTemplate], list[NodeTemplate], dict[str, object]]:
        points: list[Sizes] = [self._base]
        for axis in axes:
            steps = sorted({axis.low, axis.low + axis.multiple, *_spread(axis)})
            points += [{**self._base, axis.name: size} for size in steps]
        rng = random.Random(0)
        for _ in range(_COMBINATIONS * (len(axes) > 1)):
            points.append({**self._base, **{a.name: rng.choice(_spread(a)) for a in axes}})
        if len(axes) > 1:
            points.append({**self._base, **{axis.name: axis.low for axis in axes}})
        traces = [self._at(point) if point is not self._base else base for point in points]
        if any(t is None or _structure(t) != _structure(base) for t in traces):
            raise Unexplained("sizes that can vary alone cannot vary together")
        names = [axis.name for axis in axes]
        known = [{name: point[name] for name in names} for point in points]
        forward = unify([t.forward for t in traces if t], known)
        how = {
            part: unify_values([getattr(t.call, part) for t in traces if t], known)
            for part in ("init", "args")
        }
        return forward, unify([t.construction for t in traces if t], known), how


def _coarser(axis: FreeAxis) -> Iterator[FreeAxis]:
    """Yields an axis, and the same one in larger steps.

    A quotient such as `size // 4` is an expression of the size only if the steps divide it, and the
    least sizes of two axes together may need other work.
    """
    yield axis
    for times in _COARSER:
        multiple = times * axis.multiple
        if axis.base % multiple == 0:
            low, high = -(-axis.low // multiple) * multiple, axis.high // multiple * multiple
            yield replace(axis, low=low, multiple=multiple, high=high)


def _pruned(traced: Traced) -> Traced:
    """Returns a trace without the nodes that outputs do not depend on, such as initialisations."""
    parts = {"forward": _needed(traced.forward), "construction": _needed(traced.construction)}
    return traced.model_copy(update=parts)


def _needed(graph: AnyGraph) -> AnyGraph:
    ends = graph.outputs.values() if isinstance(graph, Construction) else graph.outputs
    needed = needed_nodes(graph.nodes, list(ends))
    nodes = tuple(
        node if number in needed or node.op == "argument" else UNUSED
        for number, node in enumerate(graph.nodes)
    )
    return graph.model_copy(update={"nodes": nodes})


def _spread(axis: FreeAxis) -> list[int]:
    """Returns some sizes of an axis, odd multiples among them."""
    steps = max(1, axis.base // axis.multiple)
    low = axis.low // axis.multiple
    chosen = {steps + 1, steps + 3, max(low, steps // 2 | 1), max(low, steps // 3), steps * 2}
    sizes = (min(step * axis.multiple, axis.high) for step in chosen)
    return sorted({size for size in sizes if size >= axis.low})


def _structure(traced: Traced) -> object:
    return structure(traced.forward), structure(traced.construction)


def _shapes(traced: Traced) -> list[object]:
    return [node.shape for node in traced.forward.arguments]


def _random_operators(traced: Traced) -> set[str]:
    return {node.op for node in traced.forward.nodes if is_random(node)}
