"""A traced graph as plain data: parsed and checked, since the process that sends it is not trusted.

Only operators of PyTorch's `aten` library are taken that check their arguments and touch nothing
but their tensors. So a graph can be run in a trusted process, whatever code it was traced from.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, Literal

import torch
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

REFUSED = frozenset(
    "from_file set set_ set_data resize resize_ resize_as resize_as_ resize_as_sparse "
    "resize_as_sparse_ as_strided as_strided_ record_stream share_memory_ swap retain_grad "
    "requires_grad_ backward to_mkldnn sym_storage_offset data".split()
)
"""Public operators that change storage, read files, or work on the autograd engine."""
PRIVATE = frozenset(
    "_softmax _log_softmax _softmax_backward_data _log_softmax_backward_data _to_copy _unsafe_view "
    "_native_batch_norm_legit _adaptive_avg_pool2d _adaptive_avg_pool3d _cdist_forward "
    "_weight_norm_interface _weight_norm _safe_softmax _fused_rms_norm _reshape_alias "
    "_adaptive_avg_pool2d_backward _upsample_bilinear2d_aa _upsample_nearest_exact2d".split()
)
"""Operators that are taken although their names begin with an underscore."""
DTYPES = frozenset(
    "float16 bfloat16 float32 float64 float8_e4m3fnuz float8_e5m2fnuz float8_e4m3fn float8_e5m2 "
    "int8 uint8 int16 int32 int64 bool".split()
)
BOUNDED = frozenset({"index", "one_hot"})
"""Operators whose size may depend on values but is bounded: by their inputs, or by operators that
they consist of."""
FORMATS = frozenset({"contiguous_format", "preserve_format", "channels_last", "channels_last_3d"})
_REDUCTIONS = 1 << 62


class GraphError(ValueError):
    """A graph cannot be taken. The message says what was found."""


def identifier(text: str) -> str:
    """Checks that a text is an identifier of Python."""
    if not text.isidentifier() or keyword.iskeyword(text) or len(text) > 120:
        raise ValueError(f"found {text[:40]!r}, expected an identifier")
    return text


def _dtype(text: str | None) -> str | None:
    if text is not None and text not in DTYPES:
        raise ValueError(
            f"found the dtype {text[:40]!r}, expected one of {', '.join(sorted(DTYPES))}"
        )
    return text


Shape = tuple[Annotated[int, Field(ge=0, le=_REDUCTIONS)], ...]
Dtype = Annotated[str | None, AfterValidator(_dtype)]


class Node(BaseModel):
    """One value: an argument, a constant, an element of a result, or the result of an operator."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    op: str
    name: Annotated[str, AfterValidator(identifier)] | None = None
    """The name of an argument."""
    args: list[Any] = []
    kwargs: dict[Annotated[str, AfterValidator(identifier)], Any] = {}
    shape: Shape | None = None
    dtype: Dtype = None
    data: list[Any] | None = None
    """The elements of a constant; None if they are not known."""


UNUSED = Node(op="unused")
"""Stands for a node that no output depends on."""
VALUES = frozenset({"argument", "constant", "item", "unused"})
"""The kinds of nodes that are no operators."""


class TracedGraph(BaseModel):
    """All nodes in order, and the numbers of those that are outputs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    nodes: tuple[Node, ...]
    outputs: tuple[int, ...]

    @property
    def arguments(self) -> list[Node]:
        """The arguments of the graph."""
        return [node for node in self.nodes if node.op == "argument"]


class Construction(BaseModel):
    """How values are made: the nodes, and the numbers of the values by name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    nodes: tuple[Node, ...]
    outputs: dict[Annotated[str, AfterValidator(identifier)], int]


class How(BaseModel):
    """How the original is constructed and called, with numbers of one trace."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    init: Any = None
    args: Any = None
    paths: dict[Annotated[str, AfterValidator(identifier)], str] = {}
    """The path of each parameter and buffer in the module."""


class Traced(BaseModel):
    """One trace of a module at given sizes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    construction: Construction
    forward: TracedGraph
    kinds: dict[str, Literal["input", "parameter", "buffer"]]
    doc: str = ""
    call: How = How()


def parse_trace(data: dict[str, Any]) -> Traced:
    """Parses a trace that another process sent.

    Raises:
        GraphError: It is malformed, or holds an operator that is not taken.
    """
    for part in ("construction", "forward"):
        if not isinstance(data.get(part), dict):
            raise GraphError(f"found no {part}")
        outputs = data[part].get("outputs")
        values = list(outputs.values()) if isinstance(outputs, dict) else outputs
        if not isinstance(values, list):
            raise GraphError(f"found no outputs in {part}")
        if not all(isinstance(one, dict) and set(one) == {"v"} for one in values):
            raise GraphError("an output is no tensor of the graph")
        data[part]["outputs"] = (
            {k: v["v"] for k, v in outputs.items()}
            if isinstance(outputs, dict)
            else [one["v"] for one in values]
        )
    try:
        traced = Traced.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        raise GraphError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    try:
        for graph in (traced.construction, traced.forward):
            _check(graph)
    except RecursionError:
        raise GraphError("an argument is nested too deeply") from None
    return traced


def _check(graph: TracedGraph | Construction) -> None:
    for number, node in enumerate(graph.nodes):
        sources = references([*node.args, *node.kwargs.values()])
        if any(type(source) is not int or not 0 <= source < number for source in sources):
            raise GraphError(f"node {number} refers to a later one")
        if node.op == "argument" and node.name is None:
            raise GraphError(f"node {number}: an argument has no name")
        if node.op not in VALUES:
            operator(node.op)
    ends = graph.outputs.values() if isinstance(graph, Construction) else graph.outputs
    if any(not 0 <= end < len(graph.nodes) for end in ends):
        raise GraphError("an output is no node")


def references(value: Any) -> Iterator[Any]:
    """Yields the numbers of the nodes that an argument refers to."""
    if isinstance(value, list):
        for one in value:
            yield from references(one)
    elif isinstance(value, dict) and "v" in value:
        yield value["v"]


@cache
def operator(name: str) -> torch._ops.OpOverload:
    """Returns an operator by a name such as `aten.add.Tensor`.

    Raises:
        GraphError: There is none, or it is not taken.
    """
    library, _, rest = name.partition(".")
    packet_name, _, overload = rest.partition(".")
    if library != "aten" or not packet_name.isidentifier() or not overload.isidentifier():
        raise GraphError(f"it uses {name[:80]!r}, expected operators of PyTorch's aten library")
    hidden = packet_name.startswith("_") and packet_name not in PRIVATE
    if hidden or packet_name in REFUSED:
        raise GraphError(f"it uses the operator {name[:80]}, which is not taken")
    overload_of_name = getattr(getattr(torch.ops.aten, packet_name, None), overload, None)
    if not isinstance(overload_of_name, torch._ops.OpOverload):
        raise GraphError(f"it uses {name[:80]}, which this PyTorch does not have")
    sized_by_values = torch.Tag.dynamic_output_shape in overload_of_name.tags
    if sized_by_values and packet_name not in BOUNDED:
        raise GraphError(f"it uses {name[:80]}, whose result has a size that depends on values")
    return overload_of_name


_CHANCES = ("p", "dropout_p", "dropout")


def is_random(node: Node) -> bool:
    """Whether a node draws random numbers. A dropout with probability zero does not."""
    if node.op in VALUES:
        return False
    overload = operator(node.op)
    if torch.Tag.nondeterministic_seeded not in overload.tags:
        return False
    names = [argument.name for argument in overload._schema.arguments]
    given = dict(zip(names, node.args, strict=False)) | node.kwargs
    defaults = {
        a.name: a.default_value for a in overload._schema.arguments if a.has_default_value()
    }
    given = defaults | given
    if given.get("train") is False or given.get("training") is False:
        return False
    chances = [given[name] for name in _CHANCES if name in given]
    return not (chances and all(chance == 0 for chance in chances))
