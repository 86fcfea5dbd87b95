"""Runs a checked graph on tensors, in the process of the caller.

Graphs hold operators that touch only their tensors, so that their cost alone must be bounded: see
`cost_of`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional
from torch.utils._pytree import tree_leaves

from kernel_gym.imports.traced.code import written_arguments
from kernel_gym.imports.traced.counting import CountedOperations
from kernel_gym.imports.traced.graph import (
    DTYPES,
    FORMATS,
    VALUES,
    GraphError,
    Node,
    TracedGraph,
    operator,
    references,
)

MAX_TENSORS = 1 << 16
"""Most tensors that one run may make, and most steps of an operator that loops over a size. Views
hold no bytes, but each takes about a kilobyte of the host."""
_LOOPS = frozenset(
    "lstm gru rnn_tanh rnn_relu gradient combinations cartesian_prod block_diag stft istft "
    "pad_sequence chain_matmul linalg_multi_dot linalg_matrix_power matrix_power".split()
)
"""Operators that take a step for each element along a size, besides those that return lists."""
_BY_LIST = frozenset(
    "split_with_sizes unsafe_split_with_sizes meshgrid broadcast_tensors atleast_1d atleast_2d "
    "atleast_3d".split()
)
"""Operators with a result for each element of an argument that is a list."""
_BY_NUMBER = frozenset(
    "chunk unsafe_chunk tensor_split hsplit vsplit dsplit split unsafe_split".split()
)
"""Operators with as many results as their second argument says, or has elements."""
_AS_CALLED: Mapping[str, Callable[..., object]] = {
    "aten.scaled_dot_product_attention.default": functional.scaled_dot_product_attention,
    "aten.rms_norm.default": torch.rms_norm,
}
"""Functions that are one kernel on a GPU. The timing model knows them by these names."""
Arguments = Mapping[str, torch.Tensor]


@dataclass(frozen=True)
class GraphCost:
    """The cost of one run of a graph.

    Attributes:
        operations: FLOPs of products, and one operation for each element of other results.
        peak_bytes: The most bytes that arguments, results and one intermediate result of a
            composed operator hold at the same time.
    """

    operations: int
    peak_bytes: int


def run_graph(graph: TracedGraph, arguments: Arguments) -> tuple[torch.Tensor, ...]:
    """Runs a graph.

    Args:
        graph: A graph that `parse_trace` returned.
        arguments: The tensors by name, all on one device. They are not changed.

    Raises:
        GraphError: A node cannot be run, or an output is no tensor.
        RuntimeError: An operator refuses its arguments.
    """
    states = list(_steps(graph, arguments))  # all are the same dictionary
    outputs = tuple(states[-1][number] for number in graph.outputs)
    if not all(isinstance(output, torch.Tensor) for output in outputs):
        raise GraphError("an output is no tensor")
    return outputs


def cost_of(graph: TracedGraph, arguments: Arguments) -> GraphCost:
    """Returns what a run costs, from a run on meta tensors, which computes and holds nothing.

    Raises:
        GraphError: A node cannot be run, or makes too many tensors.
        RuntimeError: An operator refuses its arguments.
    """
    meta = {name: value.to("meta") for name, value in arguments.items()}
    peak = 0
    with torch.no_grad(), CountedOperations() as counted:
        for live in _steps(graph, meta, bounded=True):
            peak = max(peak, _held(live) + counted.take_inner_bytes())
            if counted.results > MAX_TENSORS:
                raise GraphError(f"it makes more than {MAX_TENSORS} tensors")
    return GraphCost(counted.operations, peak)


def _held(live: Mapping[int, object]) -> int:
    tensors = (leaf for leaf in tree_leaves(dict(live)) if isinstance(leaf, torch.Tensor))
    storages = {s._cdata: s.nbytes() for t in tensors if (s := t.untyped_storage())}
    return sum(storages.values())


def _steps(
    graph: TracedGraph, arguments: Arguments, bounded: bool = False
) -> Iterator[dict[int, Any]]:
    """Yields the values that are still needed, after each node.

    With `bounded`, refuses operators with too many steps or results before they run.
    """
    device = next((value.device for value in arguments.values()), torch.device("cpu"))
    written = set(written_arguments(graph.nodes))
    last = {number: number for number in range(len(graph.nodes))}
    for number, node in enumerate(graph.nodes):
        for source in references([*node.args, *node.kwargs.values()]):
            last[source] = number
    last |= dict.fromkeys(graph.outputs, len(graph.nodes))
    ending: dict[int, list[int]] = {}
    for number, end in last.items():
        ending.setdefault(end, []).append(number)
    live: dict[int, object] = {}
    for number, node in enumerate(graph.nodes):
        if bounded and node.op not in VALUES:
            _require_few_steps(node, live)
        value = _value(node, live, arguments, device)
        live[number] = value.clone() if node.name in written else value
        yield live
        for ended in ending.get(number, ()):
            del live[ended]


def _require_few_steps(node: Node, live: Mapping[int, object]) -> None:
    """Refuses an operator that returns a list or loops, if it would take too many steps.

    Raises:
        GraphError: It takes more than `MAX_TENSORS`, or could.
    """
    schema = operator(node.op)._schema
    name = schema.name.removeprefix("aten::")
    listing = any(str(one.type) == "List[Tensor]" for one in schema.returns)
    if not listing and name not in _LOOPS:
        return
    if _steps_of(name, _decoded(node.args, live), node, live) > MAX_TENSORS:
        raise GraphError(f"{node.op} takes more than {MAX_TENSORS} steps")


def _steps_of(name: str, args: list[object], node: Node, live: Mapping[int, object]) -> int:
    """Returns the most results or steps of an operator by its sizes and numbers."""
    leaves = tree_leaves([args, _decoded(list(node.kwargs.values()), live)])
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    largest = max((size for tensor in tensors for size in tensor.shape), default=0)
    second = args[1] if len(args) > 1 else None
    if name in _BY_LIST or (name in _BY_NUMBER and isinstance(second, list)):
        return 0  # a list of arguments has few elements
    if name == "unbind":
        return _size_along(tensors, second)
    if name in ("split", "unsafe_split") and type(second) is int and second > 0:
        along = args[2] if len(args) > 2 else node.kwargs.get("dim")
        return _size_along(tensors, along) // second
    if name in _BY_NUMBER and type(second) is int:
        return abs(second)
    numbers = max((abs(leaf) for leaf in leaves if type(leaf) is int), default=0)
    return max(largest, numbers)


def _size_along(tensors: list[torch.Tensor], dim: Any) -> int:
    """Returns the size of the first tensor along an axis, the first one by default."""
    shape = tensors[0].shape if tensors else ()
    dim = 0 if dim is None else dim
    known = type(dim) is int and -len(shape) <= dim < len(shape)
    return shape[dim] if known else max(shape, default=0)


def _value(
    node: Node, live: Mapping[int, object], arguments: Arguments, device: torch.device
) -> torch.Tensor | Any:
    if node.op == "argument":
        if node.name is None or node.name not in arguments:
            raise GraphError(f"found no argument {node.name!r}, expected {[*arguments]}")
        return arguments[node.name]
    args = _decoded(node.args, live)
    if node.op == "item":
        return args[0][args[1]]
    if node.op == "constant":
        return _constant(node, device)
    if node.op in VALUES:
        raise GraphError(f"found a node {node.op!r}, expected an operator")
    kwargs = {name: _decoded(value, live) for name, value in node.kwargs.items()}
    return _called(node.op, args, kwargs, device)


def _called(op: str, args: list[object], kwargs: dict[str, object], device: torch.device) -> object:
    """Calls an operator. Devices are not recorded: all tensors are on that of the arguments."""
    overload = operator(op)
    stated = overload._schema.arguments
    for place, argument in enumerate(stated[: len(args)]):
        if args[place] is None and "Device" in str(argument.type):
            args[place] = device
    makes = not any(isinstance(leaf, torch.Tensor) for leaf in tree_leaves((args, kwargs)))
    if makes and any(argument.name == "device" for argument in stated[len(args) :]):
        kwargs["device"] = device
    return _AS_CALLED.get(op, overload)(*args, **kwargs)


def _constant(node: Node, device: torch.device) -> torch.Tensor:
    if node.data is None or node.dtype is None:
        raise GraphError(
            "it holds a tensor that was made outside of the function: make it inside, from sizes "
            "and numbers"
        )
    data = torch.tensor(_decoded(node.data, {}), dtype=getattr(torch, node.dtype), device=device)
    return data.reshape(node.shape or ())


def _decoded(value: object, live: Mapping[int, object]) -> Any:
    if isinstance(value, list):
        return [_decoded(one, live) for one in value]
    if isinstance(value, dict):
        return _special(value, live)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise GraphError(f"found an argument of type {type(value).__name__}")


def _special(value: Mapping[str, Any], live: Mapping[int, object]) -> object:
    if "v" in value:
        return live[value["v"]]
    if "float" in value:
        return float(str(value["float"]))
    if "torch" not in value:
        raise GraphError("found an unknown argument of an operator")
    name = value["torch"]
    if name is None:
        return None
    if name not in DTYPES | FORMATS:
        raise GraphError(f"found {str(name)[:40]!r}, expected a dtype or a memory format")
    return getattr(torch, name)
