"""One graph for all sizes, unified from traces at several sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kernel_gym.imports.traced.graph import Construction, Node, TracedGraph
from kernel_gym.imports.traced.literals import Number, Sizes, expression


class Unexplained(ValueError):
    """A number of the graph is no known expression of the sizes, or the structure changes."""


@dataclass(frozen=True)
class Expression:
    """A number as a text in terms of sizes."""

    text: str


@dataclass(frozen=True)
class NodeTemplate:
    """A node with expressions in place of numbers.

    Attributes:
        shape: The text of each size of the result; None if one is no known expression.
    """

    op: str
    name: str | None
    args: list[Any]
    kwargs: dict[str, object]
    shape: tuple[str, ...] | None
    dtype: str | None
    data: list[object] | None = field(default=None)


def structure(graph: TracedGraph | Construction) -> tuple[object, ...]:
    """Returns what must be equal at all sizes: operators, references and all but numbers."""
    ends = graph.outputs.items() if isinstance(graph, Construction) else graph.outputs
    nodes = (
        (n.op, n.name, n.dtype, _shell(n.args), _shell(n.kwargs), n.shape and len(n.shape))
        for n in graph.nodes
    )
    return (tuple(nodes), tuple(ends))


def _shell(value: object) -> object:
    if isinstance(value, dict):
        if value.keys() == {"dict"}:  # keywords may be named as the marks below
            return tuple((k, _shell(v)) for k, v in sorted(value["dict"].items()))
        if {"v", "torch", "float", "tensor", "other"} & set(value):
            return tuple(value.items())
        return tuple((k, _shell(v)) for k, v in sorted(value.items()))
    if isinstance(value, list):
        return tuple(map(_shell, value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return type(value).__name__
    return value


def unify(
    graphs: Sequence[TracedGraph | Construction], sizes: Sequence[Sizes]
) -> list[NodeTemplate]:
    """Returns the nodes of graphs with equal structure, with numbers as expressions of sizes.

    Raises:
        Unexplained: A number is no known expression.
    """
    return [_unified([g.nodes[i] for g in graphs], sizes) for i in range(len(graphs[0].nodes))]


def _unified(nodes: Sequence[Node], sizes: Sequence[Sizes]) -> NodeTemplate:
    first = nodes[0]
    where = first.name or first.op
    shape: tuple[str, ...] | None = None
    if first.shape is not None:
        columns = zip(*(n.shape or () for n in nodes), strict=True)
        texts = [expression(column, sizes) for column in columns]
        if None in texts and first.op == "argument":
            raise Unexplained(f"the shape of {where} is no known expression of the sizes")
        shape = None if None in texts else tuple(map(str, texts))
    if any(n.data != first.data for n in nodes):
        raise Unexplained("a constant tensor depends on the sizes")
    args = _merged([n.args for n in nodes], sizes, where)
    kwargs = _merged([n.kwargs for n in nodes], sizes, where)
    return NodeTemplate(first.op, first.name, args, kwargs, shape, first.dtype, first.data)


def _merged(values: Sequence[Any], sizes: Sequence[Sizes], where: str) -> Any:
    first = values[0]
    if isinstance(first, dict) and first.keys() == {"dict"}:
        inner = [value["dict"] for value in values]
        return {"dict": {k: _merged([v[k] for v in inner], sizes, where) for k in inner[0]}}
    if isinstance(first, dict) and (
        "v" in first or "tensor" in first or "torch" in first or "float" in first
    ):
        return first
    if isinstance(first, dict):
        return {k: _merged([v[k] for v in values], sizes, where) for k in first}
    if isinstance(first, list):
        return [_merged(column, sizes, where) for column in zip(*values, strict=True)]
    if isinstance(first, bool) or not isinstance(first, int | float):
        return first
    numbers: Sequence[Number] = values
    text = expression(numbers, sizes)
    if text is None:
        raise Unexplained(f"a number of {where} is no known expression of the sizes: {numbers[:4]}")
    return Expression(text)


def unify_values(values: Sequence[object], sizes: Sequence[Sizes]) -> object:
    """Returns nested values with expressions in place of numbers.

    Raises:
        Unexplained: A number is no known expression.
    """
    if len({repr(_shell(value)) for value in values}) > 1:
        raise Unexplained("the arguments of the constructor change their structure")
    return _merged(values, sizes, "the constructor")
