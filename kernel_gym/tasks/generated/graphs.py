"""Graphs of generated problems: chains of 2 to 6 operators, numbered without gaps or repeats.

A chain starts at a matrix `x[rows, cols]`. Each operator maps the previous value, a matrix or a
column with one number per row, to the next value. Some operators take a further input. Which
operators may follow each other is what models do: a product is followed by a bias, an activation, a
residual or a softmax, a residual by a norm, a softmax by a product. No chain holds two steps that
are one by algebra, or a step without effect.

The chains of a depth are numbered by unranking: dynamic programming counts the chains that may
follow each state, so each number below `count(depth)` is one chain, and different numbers are
different chains.
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
    LINEAR = "weight of a linear layer"
    TAPS = "taps of a filter for each column"
    ROW_INDEX = "row index"


class OperatorKind(StrEnum):
    """The kind of kernel that computes an operator."""

    POINT = "point"
    REDUCE = "reduce"
    NORM = "norm"
    MATMUL = "matmul"
    CONVOLUTION = "convolution"
    LAYOUT = "layout"


class ChainRole(StrEnum):
    """The place of an operator in a model. It decides what may follow."""

    START = "start"
    PRODUCT = "product"
    CONVOLUTION = "convolution"
    BIAS = "bias"
    SCALE = "scale"
    ACTIVATION = "activation"
    GATE = "gate"
    ROW_FACTOR = "row factor"
    RESIDUAL = "residual"
    NORM = "norm"
    SOFTMAX = "softmax"
    POOLING = "pooling"
    REDUCTION = "reduction"
    LAYOUT = "layout"


def _roles(text: str) -> frozenset[ChainRole]:
    return frozenset(ChainRole(name) for name in text.split(", "))


FOLLOWERS = {
    ChainRole.START: _roles("product, convolution, residual, norm, layout"),
    ChainRole.PRODUCT: _roles(
        "bias, scale, activation, gate, row factor, residual, norm, reduction, pooling"
    ),
    ChainRole.CONVOLUTION: _roles("bias, activation"),
    ChainRole.BIAS: _roles("activation, gate, residual, norm, reduction, pooling"),
    ChainRole.SCALE: _roles("softmax"),
    ChainRole.ACTIVATION: _roles("product, gate, residual, reduction, pooling"),
    ChainRole.GATE: _roles("product, residual, norm, reduction, pooling"),
    ChainRole.ROW_FACTOR: _roles("product, residual"),
    ChainRole.RESIDUAL: _roles("norm, activation, reduction, pooling"),
    ChainRole.NORM: _roles("product, convolution, activation, gate"),
    ChainRole.SOFTMAX: _roles("product, gate"),
    ChainRole.POOLING: _roles("activation, gate"),
    ChainRole.REDUCTION: _roles("gate"),
    ChainRole.LAYOUT: _roles("product, convolution, norm, gate, residual"),
}
"""The roles that may follow each role, as in blocks of transformers and of convolutional nets."""


@dataclass(frozen=True)
class Op:
    """One operator.

    `torch` is an expression of `{x}`, the previous value, `{t}`, the further input, and `{c}`, a
    constant. `triton` is an expression of `x`, `t` and the constant. `positive` means that no
    result is negative, `signed` that the operator would not change such values.
    """

    name: str
    kind: OperatorKind
    role: ChainRole
    torch: str
    triton: str = ""
    extra: Extra = Extra.NONE
    constants: tuple[str, ...] = ("",)
    positive: bool = False
    signed: bool = False
    flops: int = 1


def _act(name: str, torch: str, triton: str, constants: str = "", **more: object) -> Op:
    drawn, role = tuple(constants.split()) or ("",), ChainRole.ACTIVATION
    return Op(name, OperatorKind.POINT, role, torch, triton, constants=drawn, **more)  # type: ignore[arg-type]


def _binary(name: str, role: ChainRole, sign: str, extra: Extra) -> Op:
    return Op(name, OperatorKind.POINT, role, f"{{x}} {sign} {{t}}", f"x {sign} t", extra)


def _reduce(name: str, torch: str, role: ChainRole = ChainRole.REDUCTION, flops: int = 1) -> Op:
    return Op(name, OperatorKind.REDUCE, role, torch, flops=flops)


_CUBIC = "1.5957691216057308 * (x + 0.044715 * x * x * x)"
_TANH = (
    "tl.where(tl.abs({y}) < 0.15, {y} * (1.0 - {y} * {y} * (1.0 / 3.0 - {y} * {y} * (2.0 / 15.0 - "
    "{y} * {y} * (17.0 / 315.0)))), 2.0 * tl.sigmoid(2.0 * {y}) - 1.0)"
)
"""The sigmoid alone loses the digits of small numbers; there it is the series, up to 1e-8."""
_SQUARING = frozenset({"relu_squared", "mul_x", "mul_matrix"})
_OF_COLUMNS = frozenset({"sigmoid", "silu", "relu"})
"""Activations of one number per row, as in squeeze and excitation."""

OPS: tuple[Op, ...] = (
    _act("relu", "torch.relu({x})", "tl.maximum(x, 0.0)", positive=True, signed=True),
    _act("relu_squared", "torch.relu({x}).square()", "x * tl.maximum(x, 0.0)", positive=True),
    _act("silu", "F.silu({x})", "x * tl.sigmoid(x)", flops=4),
    _act("gelu", 'F.gelu({x}, approximate="tanh")', f"x * tl.sigmoid({_CUBIC})", flops=8),
    _act("sigmoid", "torch.sigmoid({x})", "tl.sigmoid(x)", positive=True, flops=3),
    _act("tanh", "torch.tanh({x})", _TANH.format(y="x"), flops=5),
    _act(
        "softcap",
        "{c} * torch.tanh({x} / {c})",
        "{c} * " + _TANH.replace("{y}", "(x / {c})"),
        "30.0",
        flops=7,
    ),
    Op(
        "scale",
        OperatorKind.POINT,
        ChainRole.SCALE,
        "{x} * {c}",
        "x * {c}",
        constants=("0.25", "0.125", "0.0884", "0.0625", "0.05", "0.03125"),
    ),
    _binary("add_bias", ChainRole.BIAS, "+", Extra.BIAS),
    _binary("add_matrix", ChainRole.RESIDUAL, "+", Extra.MATRIX),
    _binary("add_x", ChainRole.RESIDUAL, "+", Extra.INPUT),
    _binary("mul_matrix", ChainRole.GATE, "*", Extra.MATRIX),
    _binary("mul_x", ChainRole.GATE, "*", Extra.INPUT),
    _binary("mul_row", ChainRole.ROW_FACTOR, "*", Extra.ROW),
    _reduce("row_sum", "{x}.sum(1, keepdim=True)"),
    _reduce("row_mean", "{x}.mean(1, keepdim=True)", ChainRole.POOLING),
    _reduce("row_max", "{x}.amax(1, keepdim=True)", ChainRole.POOLING),
    _reduce("row_norm", "{x}.square().sum(1, keepdim=True).sqrt()", flops=2),
    _reduce("logsumexp", "torch.logsumexp({x}, 1, keepdim=True)", flops=4),
    Op(
        "softmax",
        OperatorKind.NORM,
        ChainRole.SOFTMAX,
        "torch.softmax({x}, 1)",
        positive=True,
        flops=5,
    ),
    Op("log_softmax", OperatorKind.NORM, ChainRole.SOFTMAX, "torch.log_softmax({x}, 1)", flops=5),
    Op(
        "rms_norm",
        OperatorKind.NORM,
        ChainRole.NORM,
        "F.rms_norm({x}, {x}.shape[1:], {t}, {c})",
        "",
        Extra.WEIGHT,
        constants=("1e-5",),
        flops=5,
    ),
    Op(
        "layer_norm",
        OperatorKind.NORM,
        ChainRole.NORM,
        "F.layer_norm({x}, {x}.shape[1:], {t}, {c})",
        "",
        Extra.WEIGHT_BIAS,
        constants=("1e-5",),
        flops=8,
    ),
    Op("matmul", OperatorKind.MATMUL, ChainRole.PRODUCT, "{x} @ {t}", "", Extra.FACTOR),
    Op("linear", OperatorKind.MATMUL, ChainRole.PRODUCT, "{x} @ {t}.T", "", Extra.LINEAR),
    Op(
        "causal_conv",
        OperatorKind.CONVOLUTION,
        ChainRole.CONVOLUTION,
        "F.conv1d(F.pad({x}.T, (3, 0)), {t}.T[:, None], groups={t}.shape[1]).T",
        "",
        Extra.TAPS,
        flops=8,
    ),
    Op(
        "delay",
        OperatorKind.LAYOUT,
        ChainRole.LAYOUT,
        "F.pad({x}, (0, 0, {c}, 0))[: {x}.shape[0]]",
        constants=("1", "2"),
        flops=0,
    ),
    Op(
        "take_rows", OperatorKind.LAYOUT, ChainRole.LAYOUT, "{x}[{t}]", "", Extra.ROW_INDEX, flops=0
    ),
)


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
    """The state that decides which operators may follow.

    `rescaled` means that rows have a factor which a norm would divide out again, `large` that
    values were multiplied by values, so that a softmax or one number of a row would show every
    rounding.
    """

    width: str = "cols"
    role: ChainRole = ChainRole.START
    positive: bool = False
    rescaled: bool = False
    large: bool = False
    products: int = 0
    norms: int = 0


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
    if op.role not in FOLLOWERS[state.role] or (op.signed and state.positive):
        return False
    if op.extra is Extra.INPUT:
        return state.role is not ChainRole.START and state.width in ("cols", "1")
    if state.width == "1":
        return op.name in _OF_COLUMNS
    if op.role is ChainRole.NORM:
        return state.norms < 2 and not state.rescaled
    if op.role is ChainRole.SOFTMAX or op.kind is OperatorKind.REDUCE:
        return not state.large
    return op.role is not ChainRole.PRODUCT or state.products < 2


def _after(state: _State, op: Op) -> _State:
    width = state.width
    if op.kind is OperatorKind.REDUCE:
        width = "1"
    elif op.kind is OperatorKind.MATMUL:
        width = "inner" if width == "cols" else "cols"
    elif op.extra is Extra.INPUT:
        width = "cols"
    factor = op.role is ChainRole.ROW_FACTOR or (op.role is ChainRole.GATE and state.width == "1")
    kept = op.role in (ChainRole.PRODUCT, ChainRole.GATE, ChainRole.LAYOUT)
    return replace(
        state,
        width=width,
        role=op.role,
        positive=op.positive or (op.role is ChainRole.LAYOUT and state.positive),
        rescaled=factor or (kept and state.rescaled),
        large=op.name in _SQUARING or (state.large and op.role is not ChainRole.NORM),
        products=state.products + (op.role is ChainRole.PRODUCT),
        norms=state.norms + (op.role is ChainRole.NORM),
    )
