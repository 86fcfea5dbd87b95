"""Graphs of generated problems: chains of 2 to 6 operators, numbered without gaps or repeats.

A chain starts at a matrix `x[rows, cols]`. Each operator maps the previous value, a matrix or a
column with one number per row, to the next value. Some operators take a further input. The chains
of a depth are numbered by unranking: dynamic programming counts the chains that may follow each
state, so each number below `count(depth)` is one chain, and different numbers are different chains.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache

DEPTHS = range(2, 7)
DTYPES = ("float16", "bfloat16")
_STRIDE = 0x9E3779B1
"""A prime. Seeds are multiplied by it, so consecutive seeds give very different chains."""


class Extra(StrEnum):
    """A further input of an operator."""

    NONE = ""
    MATRIX = "matrix"
    WEIGHT = "weight"
    BIAS = "bias"
    WEIGHT_BIAS = "weight and bias"
    ROW = "row"
    INPUT = "x"
    FACTOR = "factor"
    ROW_INDEX = "row index"
    COL_INDEX = "column index"


class OperatorKind(StrEnum):
    """The kind of kernel that computes an operator."""

    POINT = "point"
    REDUCE = "reduce"
    NORM = "norm"
    MATMUL = "matmul"
    LAYOUT = "layout"


@dataclass(frozen=True)
class Op:
    """One operator.

    `torch` is an expression of `{x}`, the previous value, `{t}`, the further input, and `{c}`, a
    constant. `triton` is an expression of `x`, `t` and the constant. `positive` means that no
    result is negative, `signed` that the operator would not change such values.
    """

    name: str
    kind: OperatorKind
    torch: str
    triton: str = ""
    extra: Extra = Extra.NONE
    constants: tuple[str, ...] = ("",)
    positive: bool = False
    signed: bool = False
    flops: int = 1


def _point(name: str, torch: str, triton: str, constants: str = "", **more: object) -> Op:
    drawn = tuple(constants.split()) or ("",)
    return Op(name, OperatorKind.POINT, torch, triton, constants=drawn, **more)  # type: ignore[arg-type]


def _binary(name: str, torch: str, triton: str, extra: Extra) -> Op:
    return Op(name, OperatorKind.POINT, torch, triton, extra)


_PAIRS = {
    "add": ("{x} + {t}", "x + t"),
    "sub": ("{x} - {t}", "x - t"),
    "mul": ("{x} * {t}", "x * t"),
    "max": ("torch.maximum({x}, {t})", "tl.maximum(x, t)"),
    "min": ("torch.minimum({x}, {t})", "tl.minimum(x, t)"),
}
_CUBIC = "1.5957691216057308 * (x + 0.044715 * x * x * x)"

OPS: tuple[Op, ...] = (
    _point("relu", "torch.relu({x})", "tl.maximum(x, 0.0)", positive=True, signed=True),
    _point(
        "leaky_relu",
        "F.leaky_relu({x}, {c})",
        "tl.where(x > 0, x, x * {c})",
        "0.01 0.1 0.2 0.3",
        signed=True,
    ),
    _point("silu", "F.silu({x})", "x * tl.sigmoid(x)", flops=4),
    _point("gelu", 'F.gelu({x}, approximate="tanh")', f"x * tl.sigmoid({_CUBIC})", flops=8),
    _point("sigmoid", "torch.sigmoid({x})", "tl.sigmoid(x)", positive=True, flops=3),
    _point(
        "softplus",
        "F.softplus({x})",
        "tl.maximum(x, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(x)))",
        positive=True,
        flops=5,
    ),
    _point("softsign", "F.softsign({x})", "x / (1.0 + tl.abs(x))", flops=3),
    _point(
        "hardswish",
        "F.hardswish({x})",
        "x * tl.minimum(tl.maximum(x + 3.0, 0.0), 6.0) / 6.0",
        flops=5,
    ),
    _point("square", "torch.square({x})", "x * x", positive=True),
    _point("abs", "torch.abs({x})", "tl.abs(x)", positive=True, signed=True),
    _point("bell", "torch.exp(-torch.abs({x}))", "tl.exp(-tl.abs(x))", positive=True, flops=2),
    _point("lorentz", "1.0 / (1.0 + {x} * {x})", "1.0 / (1.0 + x * x)", positive=True, flops=3),
    _point("hypot", "torch.sqrt(1.0 + {x} * {x})", "tl.sqrt(1.0 + x * x)", positive=True, flops=3),
    _point("scale", "{x} * {c}", "x * {c}", "-2.0 -0.5 0.125 0.25 0.5 1.5 2.0 3.0"),
    _point("shift", "{x} + {c}", "x + {c}", "-2.0 -1.0 -0.5 -0.25 0.25 0.5 1.0 2.0"),
    _point(
        "clamp_low", "torch.clamp({x}, min={c})", "tl.maximum(x, {c})", "-1.0 -0.5 0.125 0.25 0.5"
    ),
    _point("clamp_high", "torch.clamp({x}, max={c})", "tl.minimum(x, {c})", "0.25 0.5 1.0 1.5 2.0"),
    *(_binary(f"{n}_matrix", *pair, Extra.MATRIX) for n, pair in _PAIRS.items()),
    *(_binary(f"{n}_x", *pair, Extra.INPUT) for n, pair in _PAIRS.items()),
    _binary("mul_weight", *_PAIRS["mul"], Extra.WEIGHT),
    _binary("add_bias", *_PAIRS["add"], Extra.BIAS),
    _binary("mul_row", *_PAIRS["mul"], Extra.ROW),
    _binary("sub_row", *_PAIRS["sub"], Extra.ROW),
    Op("row_sum", OperatorKind.REDUCE, "{x}.sum(1, keepdim=True)"),
    Op("row_mean", OperatorKind.REDUCE, "{x}.mean(1, keepdim=True)"),
    Op("row_max", OperatorKind.REDUCE, "{x}.amax(1, keepdim=True)"),
    Op("row_min", OperatorKind.REDUCE, "{x}.amin(1, keepdim=True)"),
    Op("row_norm", OperatorKind.REDUCE, "{x}.square().sum(1, keepdim=True).sqrt()", flops=2),
    Op("logsumexp", OperatorKind.REDUCE, "torch.logsumexp({x}, 1, keepdim=True)", flops=4),
    Op("softmax", OperatorKind.NORM, "torch.softmax({x}, 1)", positive=True, flops=5),
    Op("log_softmax", OperatorKind.NORM, "torch.log_softmax({x}, 1)", flops=5),
    Op("centre", OperatorKind.NORM, "{x} - {x}.mean(1, keepdim=True)", flops=2),
    Op(
        "rms_norm",
        OperatorKind.NORM,
        "F.rms_norm({x}, {x}.shape[1:], {t}, 1e-5)",
        "",
        Extra.WEIGHT,
        flops=5,
    ),
    Op(
        "layer_norm",
        OperatorKind.NORM,
        "F.layer_norm({x}, {x}.shape[1:], {t}, 1e-5)",
        "",
        Extra.WEIGHT_BIAS,
        flops=8,
    ),
    Op("matmul", OperatorKind.MATMUL, "{x} @ {t}", "", Extra.FACTOR),
    Op(
        "roll",
        OperatorKind.LAYOUT,
        "torch.roll({x}, {c}, 1)",
        constants=("-5", "-3", "-2", "-1", "1", "2", "3", "5"),
        flops=0,
    ),
    Op("flip", OperatorKind.LAYOUT, "torch.flip({x}, (1,))", flops=0),
    Op(
        "delay",
        OperatorKind.LAYOUT,
        "F.pad({x}, (0, 0, {c}, 0))[: {x}.shape[0]]",
        constants=("1", "2", "3", "4"),
        flops=0,
    ),
    Op("tril", OperatorKind.LAYOUT, "torch.tril({x})", flops=0),
    Op("take_rows", OperatorKind.LAYOUT, "{x}[{t}]", "", Extra.ROW_INDEX, flops=0),
    Op("take_cols", OperatorKind.LAYOUT, "{x}[:, {t}]", "", Extra.COL_INDEX, flops=0),
)

_CONSTANT_IN_SUM = frozenset({"softmax", "centre"})
"""After these, a sum or mean of the row is constant, also if layout changes come between."""


@dataclass(frozen=True)
class OperatorStep:
    """An operator in a chain, with its constant and the widths of its input and output.

    A width is the name of an axis, "cols" or "inner", or "1" for a column.
    """

    op: Op
    constant: str
    width_in: str
    width: str


@dataclass(frozen=True)
class GeneratedGraph:
    """A chain of operators and the dtype of its tensors."""

    dtype: str
    steps: tuple[OperatorStep, ...]

    @property
    def text(self) -> str:
        """The canonical text: equal for equal graphs only."""
        return " ".join([self.dtype, *(f"{s.op.name}:{s.constant}" for s in self.steps)])


@dataclass(frozen=True)
class _State:
    """The state that decides which operators may follow."""

    width: str = "cols"
    last: str = ""
    positive: bool = False
    balanced: bool = False
    products: int = 0


def graph(seed: int, depth: int) -> GeneratedGraph:
    """Returns the graph of a seed.

    Raises:
        ValueError: There is no such depth, or it has fewer graphs.
    """
    if depth not in DEPTHS:
        raise ValueError(f"depth: found {depth}, expected {DEPTHS.start} to {DEPTHS.stop - 1}")
    total = count(depth)
    if not 0 <= seed < total:
        raise ValueError(f"seed: found {seed}, expected 0 to {total - 1} at depth {depth}")
    rank = seed * _STRIDE % total
    rank, dtype = divmod(rank, len(DTYPES))
    return GeneratedGraph(DTYPES[dtype], _unrank(_State(), depth, rank))


@cache
def count(depth: int) -> int:
    """Returns the number of graphs of a depth."""
    return len(DTYPES) * _following(_State(), depth)


def _unrank(state: _State, depth: int, rank: int) -> tuple[OperatorStep, ...]:
    if depth == 0:
        return ()
    for op, after in _moves(state):
        number = _following(after, depth - 1)
        choice, rest = divmod(rank, number) if number else (len(op.constants), rank)
        if choice < len(op.constants):
            step = OperatorStep(op, op.constants[choice], state.width, after.width)
            return (step, *_unrank(after, depth - 1, rest))
        rank -= number * len(op.constants)
    raise AssertionError("a rank beyond the count")


@cache
def _following(state: _State, depth: int) -> int:
    """Returns the number of chains of a depth that may follow a state."""
    if depth == 0:
        return 1
    return sum(len(op.constants) * _following(after, depth - 1) for op, after in _moves(state))


@cache
def _moves(state: _State) -> tuple[tuple[Op, _State], ...]:
    """Returns the operators that may follow, with the states after them."""
    return tuple((op, _after(state, op)) for op in OPS if _may_follow(state, op))


def _may_follow(state: _State, op: Op) -> bool:
    if op.name == state.last or (op.signed and state.positive):
        return False
    if op.extra is Extra.INPUT:
        return bool(state.last) and state.width in ("cols", "1")
    if state.width == "1":
        return op.kind is OperatorKind.POINT and op.extra in (Extra.NONE, Extra.ROW)
    if op.kind is OperatorKind.MATMUL:
        return state.products < 2
    return not (state.balanced and op.name in ("row_sum", "row_mean", "centre"))


def _after(state: _State, op: Op) -> _State:
    width = state.width
    if op.kind is OperatorKind.REDUCE:
        width = "1"
    elif op.kind is OperatorKind.MATMUL:
        width = "inner" if width == "cols" else "cols"
    elif op.extra is Extra.INPUT:
        width = "cols"
    moved = op.kind is OperatorKind.LAYOUT and op.name not in ("tril", "take_cols")
    return replace(
        state,
        width=width,
        last=op.name,
        positive=op.positive or (op.kind is OperatorKind.LAYOUT and state.positive),
        balanced=op.name in _CONSTANT_IN_SUM or (moved and state.balanced),
        products=state.products + (op.kind is OperatorKind.MATMUL),
    )
