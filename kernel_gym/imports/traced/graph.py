"""A traced graph as plain data: parsed and checked, since the process that sends it is not trusted.

Only operators of PyTorch's dispatcher are taken that compute tensors from tensors and numbers, see
`kernel_gym.tasks.dispatcher`. The numbers of nodes, arguments and elements are bounded. So a graph
can be run in a trusted process, whatever code it was traced from.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, Literal

import torch
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from kernel_gym.tasks.dispatcher import dispatcher_operator, is_word

PRIVATE = frozenset(
    "_softmax _log_softmax _softmax_backward_data _log_softmax_backward_data _to_copy _unsafe_view "
    "_native_batch_norm_legit _adaptive_avg_pool2d _adaptive_avg_pool3d _cdist_forward "
    "_weight_norm_interface _weight_norm _safe_softmax _fused_rms_norm _reshape_alias "
    "_adaptive_avg_pool2d_backward _upsample_bilinear2d_aa _upsample_nearest_exact2d "
    "__lshift__ __rshift__".split()
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
MAX_NODES = 4000
"""Most nodes of a graph. The tracer records no more either."""
MAX_ELEMENTS = 4096
"""Most elements of a constant, and most values among the arguments of a node."""
MAX_INTEGER = 1 << 63
"""Integers among arguments are smaller in magnitude."""
MAX_NAME = 120
"""Most characters of a text within a value."""
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
    args: list[object] = []
    kwargs: dict[Annotated[str, AfterValidator(identifier)], object] = {}
    shape: Annotated[Shape, Field(max_length=64)] | None = None
    dtype: Dtype = None
    data: Annotated[list[object], Field(max_length=MAX_ELEMENTS)] | None = None
    """The elements of a constant; None if they are not known."""


UNUSED = Node(op="unused")
"""Stands for a node that no output depends on."""
VALUES = frozenset({"argument", "constant", "item", "unused"})
"""The kinds of nodes that are no operators."""


Nodes = Annotated[tuple[Node, ...], Field(max_length=MAX_NODES)]


class TracedGraph(BaseModel):
    """All nodes in order, and the numbers of those that are outputs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    nodes: Nodes
    outputs: tuple[int, ...]

    @property
    def arguments(self) -> list[Node]:
        """The arguments of the graph."""
        return [node for node in self.nodes if node.op == "argument"]


class Construction(BaseModel):
    """How values are made: the nodes, and the numbers of the values by name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    nodes: Nodes
    outputs: dict[Annotated[str, AfterValidator(identifier)], int]


class How(BaseModel):
    """How the original is constructed and called, with numbers of one trace."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    init: object = None
    args: object = None
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
        if not all(isinstance(value, dict) and set(value) == {"v"} for value in values):
            raise GraphError("an output is no tensor of the graph")
        data[part]["outputs"] = (
            {k: v["v"] for k, v in outputs.items()}
            if isinstance(outputs, dict)
            else [value["v"] for value in values]
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
        values = [*node.args, *node.kwargs.values(), *(node.data or ())]
        if sum(1 for _ in _leaves(values)) > MAX_ELEMENTS:
            raise GraphError(f"node {number} has more than {MAX_ELEMENTS} values")
        if node.op not in VALUES:
            _check_arguments(node, operator(node.op))
    ends = graph.outputs.values() if isinstance(graph, Construction) else graph.outputs
    if any(not 0 <= end < len(graph.nodes) for end in ends):
        raise GraphError("an output is no node")


def _leaves(value: object) -> Iterator[object]:
    """Yields the numbers, texts and special values among arguments, and checks their size."""
    if isinstance(value, list):
        for one in value:
            yield from _leaves(one)
        return
    if isinstance(value, dict) and (len(value) != 1 or not _is_small(next(iter(value.values())))):
        raise GraphError("found an unknown argument of an operator")
    if type(value) is int and abs(value) >= MAX_INTEGER:
        raise GraphError("found an integer of more than 64 bits")
    yield value


def _is_small(value: object) -> bool:
    """Whether the content of a special value is a number, or a text of the length of a name."""
    if isinstance(value, str):
        return len(value) <= MAX_NAME
    return value is None or isinstance(value, int | float)


def _check_arguments(node: Node, overload: torch._ops.OpOverload) -> None:
    """Checks that texts are known words, and that numbers do not stand for types or layouts."""
    stated = overload._schema.arguments
    names = [argument.name for argument in stated]
    kinds = dict(zip(names, (str(argument.real_type) for argument in stated), strict=True))
    if len(node.args) > len(names) or not kinds.keys() >= node.kwargs.keys():
        raise GraphError(f"{node.op} does not take these arguments")
    packet = overload._schema.name.removeprefix("aten::")
    for name, value in [*zip(names, node.args, strict=False), *node.kwargs.items()]:
        kind = kinds[name]
        for leaf in _leaves(value):
            if isinstance(leaf, str) and not ("str" in kind and is_word(packet, leaf)):
                raise GraphError(f"{node.op} takes no text {leaf[:40]!r}")
        if kind.startswith(_NAMED) and not (value is None or isinstance(value, dict)):
            raise GraphError(f"{node.op} takes no number as its {name!r}")


_NAMED = tuple(
    f"{form}{kind}"
    for kind in ("ScalarType", "Layout", "MemoryFormat", "Device", "Generator")
    for form in ("", "Optional[")
)
"""The beginnings of types whose values are names and no numbers."""


def references(value: object) -> Iterator[int]:
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
    if packet_name.startswith("_") and packet_name not in PRIVATE:
        raise GraphError(f"it uses the operator {name[:80]}, which is not taken")
    overload_of_name = dispatcher_operator(packet_name, overload)
    if overload_of_name is None:
        raise GraphError(f"it uses {name[:80]}, which is not taken: only operators of PyTorch's "
                         "dispatcher are, with tensors, numbers and types as arguments and tensors "
                         "as results")  # fmt: skip
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
