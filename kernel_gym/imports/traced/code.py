"""Writes the nodes of a graph as Python that calls operators of PyTorch and nothing else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kernel_gym.imports.traced.graph import VALUES, GraphError, Node, operator
from kernel_gym.imports.traced.template import Expression, NodeTemplate

_ALIASES = frozenset(
    "contiguous reshape to flatten dropout expand_as type_as numpy_T alias detach unflatten chunk "
    "split view_as squeeze_ feature_dropout alpha_dropout item".split()
)
"""Operators whose result may share memory with their first argument, besides declared views."""
_RANDOM = {
    "aten.rand.default": "values.unit({0}, {dtype}, distribution, generator)",
    "aten.randn.default": "values.normal({0}, {dtype}, distribution, generator)",
    "aten.rand_like.default": "values.unit({0}.shape, {like}, distribution, generator)",
    "aten.randn_like.default": "values.normal({0}.shape, {like}, distribution, generator)",
    "aten.randint.default": "values.whole(0, {0}, {1}, {integer}, distribution, generator)",
    "aten.randint.low": "values.whole({0}, {1}, {2}, {integer}, distribution, generator)",
    "aten.randint_like.default": (
        "values.whole(0, {1}, {0}.shape, {like}, distribution, generator)"
    ),
    "aten.randint_like.low_dtype": (
        "values.whole({1}, {2}, {0}.shape, {like}, distribution, generator)"
    ),
    "aten.randperm.default": "torch.randperm({0}, generator=generator)",
    "aten.bernoulli.default": "torch.bernoulli({0}, generator=generator)",
    "aten.multinomial.default": "torch.multinomial({0}, {1}, {2}, generator=generator)",
    "aten.normal_.default": "{0}.normal_({1}, {2}, generator=generator)",
    "aten.uniform_.default": "{0}.uniform_({1}, {2}, generator=generator)",
    "aten.exponential_.default": "{0}.exponential_({1}, generator=generator)",
    "aten.random_.from": "{0}.random_({1}, {2}, generator=generator)",
}
"""The code in place of an operator that draws random numbers."""
_DEFAULTS = {
    "aten.normal_.default": ("0.0", "1.0"),
    "aten.uniform_.default": ("0.0", "1.0"),
    "aten.exponential_.default": ("1.0",),
    "aten.multinomial.default": ("1", "False"),
}


@dataclass
class Code:
    """Lines of a function body, and the expressions of the values that it returns."""

    lines: list[str] = field(default_factory=list)
    results: dict[int, str] = field(default_factory=dict)
    """The expression of each node that was asked for."""
    sizes: set[str] = field(default_factory=set)
    """The sizes that the lines use."""
    arguments: set[str] = field(default_factory=set)
    """The arguments that the lines use."""


def write(
    nodes: Sequence[NodeTemplate],
    outputs: Sequence[int],
    taken: frozenset[str],
    random: bool = False,
    real: frozenset[int] = frozenset(),
) -> Code:
    """Writes the code of some nodes.

    Args:
        nodes: All nodes in order.
        outputs: The nodes whose values are needed.
        taken: Names that local variables must not have.
        random: Whether operators may draw random numbers. Then `values`, `distribution` and
            `generator` must be defined where the code stands.
        real: Nodes that draw with `torch.rand` and may take any real number.

    Raises:
        GraphError: A node draws random numbers in a way that is not known, or is a constant whose
            values are not known.
    """
    return _Writer(nodes, taken, random, real).write(outputs)


class _Writer:
    def __init__(
        self,
        nodes: Sequence[NodeTemplate],
        taken: frozenset[str],
        random: bool,
        real: frozenset[int],
    ) -> None:
        self._nodes, self._random, self._real = nodes, random, real
        self._taken = set(taken)
        self._names: dict[int, str] = {}
        self._code = Code()

    def write(self, outputs: Sequence[int]) -> Code:
        needed = needed_nodes(self._nodes, outputs)
        for name in written_arguments(self._nodes):
            self._code.lines.append(f"{name} = {name}.clone()")
        for number, node in enumerate(self._nodes):
            if number in needed:
                self._write_node(number, node)
        self._code.results = {number: self._names[number] for number in outputs}
        return self._code

    def _write_node(self, number: int, node: NodeTemplate) -> None:
        if node.op == "argument":
            assert node.name is not None
            self._names[number] = node.name
            self._code.arguments.add(node.name)
            return
        if node.op == "item":
            self._names[number] = f"{self._text(node.args[0])}[{self._text(node.args[1])}]"
            return
        if number in self._real:
            node = replace(node, op="aten.randn.default")
        text = self._constant(node) if node.op == "constant" else self._call(node)
        name = self._new_name(node.op.split(".")[1] if "." in node.op else node.op)
        self._names[number] = name
        self._code.lines.append(f"{name} = {text}")

    def _call(self, node: NodeTemplate) -> str:
        args = [self._text(arg) for arg in _without_statistics(node)]
        if self._random and node.op in _RANDOM:
            return self._draw(node, args)
        kwargs = [f"{key}={self._text(value)}" for key, value in node.kwargs.items()]
        if self._code.arguments:
            place = f"{min(self._code.arguments)}.device"
            args = [place if number in _places(node, args) else a for number, a in enumerate(args)]
            kwargs += [f"device={place}"] if _creates(node) else []
        return f"{node.op}({', '.join([*args, *kwargs])})"

    def _draw(self, node: NodeTemplate, args: list[str]) -> str:
        args += _DEFAULTS.get(node.op, ())[max(0, len(args) - 1) :]
        dtype = f"torch.{node.dtype}"
        return _RANDOM[node.op].format(*args, dtype=dtype, like=dtype, integer=dtype)

    def _constant(self, node: NodeTemplate) -> str:
        if node.data is None:
            raise GraphError("it holds a tensor that was not made by PyTorch from sizes")
        known = sorted(self._code.arguments)
        maker = f"{known[0]}.new_tensor" if known else "torch.tensor"  # on the argument's device
        data = f"{maker}({_plain(node.data)}, dtype=torch.{node.dtype})"
        return data if node.shape is None else f"{data}.reshape({_tuple(node.shape)})"

    def _text(self, value: object) -> str:
        if isinstance(value, Expression):
            named = (n for n in ast.walk(ast.parse(value.text)) if isinstance(n, ast.Name))
            self._code.sizes |= {name.id for name in named}
            return value.text
        if isinstance(value, list):
            return f"[{', '.join(map(self._text, value))}]"
        if isinstance(value, dict):
            return self._special(value)
        if value is None or isinstance(value, bool | str):
            return repr(value)
        raise GraphError(f"found an argument of type {type(value).__name__}")

    def _special(self, value: Mapping[str, Any]) -> str:
        if "v" in value:
            return self._names[value["v"]]
        if "float" in value:
            return f'float("{float(value["float"])}")'
        if "torch" in value:
            return "None" if value["torch"] is None else f"torch.{_torch_name(value['torch'])}"
        raise GraphError("found an unknown argument of an operator")

    def _new_name(self, stem: str) -> str:
        stem = stem.strip("_") or "value"
        stem = "value" if stem.startswith("lift_fresh") else stem
        name, count = stem, 1
        while name in self._taken:
            count += 1
            name = f"{stem}_{count}"
        self._taken.add(name)
        return name


_TORCH_NAME = re.compile(r"[a-z0-9_]+")


def _torch_name(text: object) -> str:
    if not isinstance(text, str) or not _TORCH_NAME.fullmatch(text):
        raise GraphError("found an argument that is no dtype and no memory format")
    return text


def _plain(data: Sequence[object]) -> str:
    parts = (f'float("{float(d["float"])}")' if isinstance(d, dict) else repr(d) for d in data)
    return f"[{', '.join(parts)}]"


def _tuple(texts: Sequence[str]) -> str:
    return f"({', '.join(texts)}{',' * (len(texts) == 1)})"


def needed_nodes(nodes: Sequence[NodeTemplate | Node], outputs: Sequence[int]) -> set[int]:
    """Returns the nodes that outputs depend on, also by writes into memory that they share."""
    roots = _roots(nodes)
    needed = set(outputs)
    live = {roots[number] for number in outputs}
    for number in reversed(range(len(nodes))):
        node = nodes[number]
        if number not in needed and not (_writes(node) and roots[number] in live):
            continue
        needed.add(number)
        for source in _sources(_without_statistics(node), node.kwargs):
            needed.add(source)
            live.add(roots[source])
    return needed


def written_arguments(nodes: Sequence[NodeTemplate | Node]) -> list[str]:
    """Returns the arguments that operators write to, directly or through a view."""
    roots = _roots(nodes)
    written = {roots[number] for number, node in enumerate(nodes) if _writes(node)}
    return [n.name for i, n in enumerate(nodes) if i in written and n.op == "argument" and n.name]


def _roots(nodes: Sequence[NodeTemplate | Node]) -> list[int]:
    """Returns for each node the node that owns its memory, if it may be a view."""
    roots = list(range(len(nodes)))
    for number, node in enumerate(nodes):
        if node.op in VALUES - {"item"}:
            continue
        first = next(_sources(node.args, {}), None)
        shares = node.op == "item" or _writes(node) or _may_share(node.op)
        if first is not None and shares:
            roots[number] = roots[first]
    return roots


def _may_share(name: str) -> bool:
    overload = operator(name)
    return overload.is_view or name.split(".")[1] in _ALIASES


def _writes(node: NodeTemplate | Node) -> bool:
    if node.op in VALUES:
        return False
    return operator(node.op)._schema.is_mutable


def _places(node: NodeTemplate, args: Sequence[str]) -> set[int]:
    """Returns which arguments of an operator are devices, which are not recorded."""
    stated = operator(node.op)._schema.arguments[: len(args)]
    devices = {number for number, argument in enumerate(stated) if "Device" in str(argument.type)}
    return {number for number in devices if args[number] == "None"}


def _creates(node: NodeTemplate) -> bool:
    """Whether an operator makes a tensor from numbers alone, on a device."""
    takes = any(argument.name == "device" for argument in operator(node.op)._schema.arguments)
    return takes and not any(True for _ in _sources(node.args, node.kwargs))


def _without_statistics(node: NodeTemplate | Node) -> list[object]:
    """Returns the arguments, without the running statistics that a batch norm only updates."""
    if node.op not in ("aten.batch_norm.default", "aten.instance_norm.default"):
        return node.args
    training = node.args[5]
    return [*node.args[:3], None, None, *node.args[5:]] if training is True else node.args


def _sources(args: Sequence[object], kwargs: Mapping[str, object]) -> Iterator[int]:
    for value in (*args, *kwargs.values()):
        if isinstance(value, list):
            yield from _sources(value, {})
        elif isinstance(value, dict) and "v" in value:
            yield value["v"]


def drawn_directly(nodes: Sequence[NodeTemplate], outputs: Sequence[int]) -> frozenset[int]:
    """Returns the nodes that draw an output by `torch.rand` itself, without changing it."""
    draws = set()
    for end in outputs:
        while nodes[end].op in ("aten.detach.default", "aten.alias.default"):
            end = nodes[end].args[0]["v"]
        if nodes[end].op == "aten.rand.default":
            draws.add(end)
    return frozenset(draws)
