"""Evaluates functions of arithmetic on the sizes of tensors, without running them.

KernelBenchX states the bytes and operations of a task as methods of a Python file. They are read as
syntax trees: assignments, arithmetic, sizes of tensors and a returned number. Anything else has no
value here, so no code of the suite runs.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

MAX_BITS = 256
"""Most bits of an integer, so that no power fills the memory."""
_BINARY: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Gt: operator.gt,
    ast.Lt: operator.lt,
}
_CALLS: Mapping[str, Callable[..., float]] = {
    "float": float,
    "int": int,
    "len": len,
    "max": max,
    "min": min,
    "sum": sum,
}


class UnknownValueError(ValueError):
    """A function is no plain arithmetic."""


@dataclass(frozen=True)
class SizedTensor:
    """The shape of a tensor and the bytes of an element."""

    shape: tuple[int, ...]
    itemsize: int


Value: TypeAlias = "int | float | SizedTensor | tuple[Value, ...] | None"
Names = Mapping[str, Value]


def result_of(function: ast.FunctionDef, arguments: Names) -> float:
    """Returns the number that a function returns.

    Args:
        function: Its syntax tree.
        arguments: The values of its parameters: numbers, `SizedTensor`, None, or tuples of these.

    Raises:
        UnknownValueError: It is no plain arithmetic on them, or returns no finite number.
    """
    try:
        number = float(_number(_run(function.body, dict(arguments))))
    except UnknownValueError:
        raise
    except (TypeError, ValueError, ArithmeticError, LookupError, RecursionError) as error:
        raise UnknownValueError(f"{function.name}: {type(error).__name__}") from None
    if not math.isfinite(number):
        raise UnknownValueError(f"{function.name}: no finite number")
    return number


def _run(body: list[ast.stmt], names: dict[str, Value]) -> Value:
    """Runs statements up to a return, and gives its value; None if there is none."""
    for node in body:
        if isinstance(node, ast.Return) and node.value is not None:
            return _value(node.value, names)
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            _bind(node.targets[0], _value(node.value, names), names)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            changed = ast.BinOp(ast.Name(node.target.id), node.op, node.value)
            names[node.target.id] = _value(changed, names)
        elif isinstance(node, ast.If):
            chosen = _run(node.body if _value(node.test, names) else node.orelse, names)
            if chosen is not None:
                return chosen
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            raise UnknownValueError(f"found {type(node).__name__}")
    return None


def _bind(target: ast.expr, value: Value, names: dict[str, Value]) -> None:
    if isinstance(target, ast.Name):
        names[target.id] = value
        return
    parts = target.elts if isinstance(target, ast.Tuple) else []
    if not isinstance(value, tuple) or len(parts) != len(value):
        raise UnknownValueError("found a target that does not fit")
    for part, bound in zip(parts, value, strict=True):
        _bind(part, bound, names)


def _value(node: ast.expr, names: Names) -> Value:
    """The value of an expression."""
    kind = _KINDS.get(type(node))
    if kind is None:
        raise UnknownValueError(f"found {type(node).__name__}")
    return kind(node, names)


def _number(value: Value) -> int | float:
    if not isinstance(value, int | float):
        raise UnknownValueError("found no number")
    return value


def _whole_number(value: Value) -> int:
    if not isinstance(value, int):
        raise UnknownValueError("found no integer")
    return value


def _constant(node: ast.Constant, names: Names) -> Value:
    if not isinstance(node.value, int | float | None):
        raise UnknownValueError("found a text")
    return node.value


def _negative(node: ast.UnaryOp, names: Names) -> Value:
    if not isinstance(node.op, ast.USub):
        raise UnknownValueError("found an operator")
    return -_number(_value(node.operand, names))


def _comparison(node: ast.Compare, names: Names) -> Value:
    if len(node.ops) != 1:
        raise UnknownValueError("found several comparisons")
    pair = _value(node.left, names), _value(node.comparators[0], names)
    _require_flat(pair)
    return _COMPARE[type(node.ops[0])](*pair)


def _binary(node: ast.BinOp, names: Names) -> Value:
    """The result of an operator on two numbers: a tuple would be repeated."""
    left, right = (_number(_value(side, names)) for side in (node.left, node.right))
    if isinstance(node.op, ast.Pow):
        if not isinstance(right, int) or not 0 <= right <= 4:
            raise UnknownValueError("found a large power")
        value = left**right
    else:
        value = _BINARY[type(node.op)](left, right)
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise UnknownValueError("found a large number")
    return value


def _require_flat(values: Iterable[Value]) -> None:
    """Refuses tuples of tuples: comparing two of these may take forever."""
    for value in values:
        if isinstance(value, tuple) and any(isinstance(part, tuple) for part in value):
            raise UnknownValueError("found a tuple of tuples")


def _attribute(node: ast.Attribute, names: Names) -> Value:
    value = _value(node.value, names)
    if not isinstance(value, SizedTensor):
        raise UnknownValueError(f"found an attribute {node.attr:.40}")
    known: Names = {"shape": value.shape, "ndim": len(value.shape), "itemsize": value.itemsize}
    return known[node.attr]


def _call(node: ast.Call, names: Names) -> Value:
    """The value of a method of a tensor, or of a known function."""
    if node.keywords:
        raise UnknownValueError("found a keyword")
    arguments = [_value(argument, names) for argument in node.args]
    _require_flat(arguments)
    if isinstance(node.func, ast.Name):
        return _CALLS[node.func.id](*arguments)
    if not isinstance(node.func, ast.Attribute):
        raise UnknownValueError("found a call of a call")
    tensor = _value(node.func.value, names)
    if not isinstance(tensor, SizedTensor):
        raise UnknownValueError(f"found a method {node.func.attr:.40}")
    if node.func.attr == "size":
        return tensor.shape[_whole_number(arguments[0])] if arguments else tensor.shape
    known = {"numel": math.prod(tensor.shape), "nelement": math.prod(tensor.shape)}
    return {**known, "element_size": tensor.itemsize, "dim": len(tensor.shape)}[node.func.attr]


def _item(node: ast.Subscript, names: Names) -> Value:
    values = _value(node.value, names)
    if not isinstance(values, tuple):
        raise UnknownValueError("found an index of no tuple")
    return values[_whole_number(_value(node.slice, names))]


_KINDS: Mapping[type[ast.expr], Callable[[Any, Names], Value]] = {
    ast.Attribute: _attribute,
    ast.BinOp: _binary,
    ast.Call: _call,
    ast.Compare: _comparison,
    ast.Constant: _constant,
    ast.IfExp: lambda node, names: _value(
        node.body if _value(node.test, names) else node.orelse, names
    ),
    ast.Name: lambda node, names: names[node.id],
    ast.Subscript: _item,
    ast.Tuple: lambda node, names: tuple(_value(part, names) for part in node.elts),
    ast.UnaryOp: _negative,
}
"""The kinds of expressions that have a value."""
