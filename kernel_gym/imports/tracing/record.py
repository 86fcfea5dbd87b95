"""Records what a user's module does as a list of operators, which are plain data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypedDict

import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx

from kernel_gym.imports.tracing.built import Built
from kernel_gym.imports.tracing.on_cpu import Reserved
from kernel_gym.imports.tracing.recurrent import one_step_only
from kernel_gym.sandbox.failures import BuildError

MAX_NODES = 4000
MAX_CONSTANTS = 4096
"""Most elements of a constant tensor."""
_SKIPPED = frozenset({"_set_grad_enabled", "_enter_autocast", "_exit_autocast"})


def of_forward(built: Built) -> dict[str, object]:
    """Traces the forward pass on fake tensors and records it.

    Composite operators such as `linear` stay whole, as eager PyTorch calls them. Only a pass that
    differentiates something is decomposed, since the trace must see the derivatives.
    """
    assert built.mode is not None
    names = list(built.values)

    def forward(*values: torch.Tensor) -> list[torch.Tensor]:
        return built.outputs(dict(zip(names, values, strict=True)))

    with built.mode, one_step_only():
        try:
            with torch.no_grad():
                graph = make_fx(forward, pre_dispatch=True)(*built.values.values())
        except RuntimeError as error:
            if "grad" not in str(error):
                raise
            graph = make_fx(forward)(*built.values.values())
        if _has_hidden_values(graph):
            graph = make_fx(forward)(*built.values.values())
    return dict(_recorded(graph, names))


def _has_hidden_values(graph: GraphModule) -> bool:
    """Whether the graph takes tensors from elsewhere, such as derivatives that it did not see."""
    attributes = (n.target for n in graph.graph.nodes if n.op == "get_attr")
    return any(
        isinstance(getattr(graph, str(name)), torch._subclasses.FakeTensor) for name in attributes
    )


def of_construction(built: Built) -> dict[str, object]:
    """Records how inputs and buffers are made."""
    assert built.graph is not None  # the tensors are fake
    record = _recorded(built.graph, [])
    names = [name for name, kind in built.kinds.items() if kind != "parameter"]
    outputs = dict(zip(names, record["outputs"], strict=True))
    return {"nodes": record["nodes"], "outputs": outputs}


class RecordedGraph(TypedDict):
    """A recorded graph: its nodes, and the values that it returns."""

    nodes: list[dict[str, object]]
    outputs: list[object]


def _recorded(module: GraphModule, names: list[str]) -> RecordedGraph:
    graph: Graph = module.graph
    graph.eliminate_dead_code(lambda node: _has_effect(node))
    known: dict[Node, int] = {}
    nodes: list[dict[str, object]] = []
    outputs: list[object] = []
    placeholders = iter(names)
    for node in graph.nodes:
        if node.op == "output":
            outputs = [_value(arg, known) for arg in node.args[0]]
        elif node.op != "call_function" or node.target.__name__ not in _SKIPPED:
            known[node] = len(nodes)
            nodes.append(_node(node, module, known, placeholders))
    if len(nodes) > MAX_NODES:
        raise BuildError(
            f"it runs {len(nodes)} operators, at most {MAX_NODES} are taken: a loop over a size "
            "is unrolled; use smaller sizes, or operators that loop themselves"
        )
    return {"nodes": nodes, "outputs": outputs}


def _has_effect(node: Node) -> bool:
    if node.op in ("placeholder", "output"):
        return True
    schema = getattr(node.target, "_schema", None)
    return bool(schema is not None and schema.is_mutable)


def _node(
    node: Node, module: GraphModule, known: dict[Node, int], names: Iterator[str]
) -> dict[str, object]:
    if node.op == "placeholder":
        return {"op": "argument", "name": next(names), **_described(node)}
    if node.op == "get_attr":
        return {"op": "constant", **_constant(getattr(module, str(node.target)))}
    target = node.target
    if getattr(target, "__name__", "") == "getitem":
        source, index = node.args
        assert isinstance(source, Node)  # an item is taken of the result of an operator
        return {
            "op": "item",
            "args": [{"v": known[source]}, index],
            "kwargs": {},
            **_described(node),
        }
    if not isinstance(target, torch._ops.OpOverload):
        raise BuildError(f"it calls {target}, which is no operator of PyTorch")
    args = [_value(arg, known) for arg in node.args]
    kwargs = {k: _value(v, known) for k, v in node.kwargs.items() if k not in _PLACES}
    return {"op": str(target), "args": args, "kwargs": kwargs, **_described(node)}


_PLACES = frozenset({"device", "pin_memory", "layout", "generator"})


def _constant(value: torch.Tensor) -> dict[str, object]:
    described: dict[str, object] = {"shape": list(value.shape), "dtype": str(value.dtype)[6:]}
    fake = isinstance(value, torch._subclasses.FakeTensor)
    if fake or value.numel() > MAX_CONSTANTS:
        return described | {"data": None}
    return described | {"data": [_number(one) for one in value.reshape(-1).tolist()]}


def _described(node: Node) -> dict[str, object]:
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        return {"shape": None, "dtype": None}
    return {"shape": [int(size) for size in value.shape], "dtype": str(value.dtype)[6:]}


def _value(value: object, known: dict[Node, int]) -> object:
    """Returns an argument of an operator as JSON."""
    if isinstance(value, Node):
        return {"v": known[value]}
    if isinstance(value, list | tuple):
        return [_value(one, known) for one in value]
    if isinstance(value, torch.dtype | torch.memory_format):
        return {"torch": str(value)[6:]}
    if isinstance(value, torch.device | torch.layout):
        return {"torch": None}
    if value is None or isinstance(value, bool | int | float | str):
        return _number(value)
    if isinstance(value, torch.SymInt | torch.SymFloat):
        raise BuildError("a size depends on values: it cannot be traced")
    raise BuildError(f"an operator takes a {type(value).__name__}, which cannot be recorded")


def _number(value: object) -> object:
    """Returns a number as JSON, which has neither infinities nor NaN."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return {"float": str(value)}
    return value


def of_call(built: Built) -> dict[str, object]:
    """Records how the module is constructed and called; None where it takes other than numbers."""
    names = {id(value): name for name, value in built.values.items()}
    args, kwargs = built.arguments
    paths = {
        name: _path(built, places)
        for name, places in built.places.items()
        if built.kinds[name] != "input"
    }
    return {"init": _plain(built.init, names), "args": _plain([list(args), kwargs], names)} | {
        "paths": paths
    }


def _path(built: Built, places: Any) -> str:
    owner, name = places[0]
    assert isinstance(built.function, torch.nn.Module)  # it has parameters
    for path, module in built.function.named_modules():
        if module is owner:
            return f"{path}.{name}" if path else name
    raise AssertionError("a parameter without a module")


def _plain(value: object, names: dict[int, str]) -> object:
    if isinstance(value, torch.Tensor):
        return {"tensor": names.get(id(value), "")}
    if isinstance(value, Reserved):
        fill = {"fill": value.fill} if value.fill is not None else {}
        return {"reserved": list(value.shape), "of": str(value.dtype)[6:], **fill}
    if isinstance(value, list | tuple):
        return [_plain(one, names) for one in value]
    if isinstance(value, dict):
        return {"dict": {str(k): _plain(v, names) for k, v in value.items()}}
    if value is None or isinstance(value, bool | int | float | str):
        return _number(value)
    return {"other": type(value).__name__}
