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
from typing import Any

MAX_BITS = 256
"""Most bits of an integer, so that no power fills the memory."""
_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Gt: operator.gt,
    ast.Lt: operator.lt,
}
_CALLS: Mapping[str, Callable[..., Any]] = {
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
class Sized:
    """The shape of a tensor and the bytes of an element."""

    shape: tuple[int, ...]
    itemsize: int


def result_of(function: ast.FunctionDef, arguments: Mapping[str, object]) -> float:
    """Returns the number that a function returns.

    Args:
        function: Its syntax tree.
        arguments: The values of its parameters: numbers, `Sized`, None, or tuples of these.

    Raises:
        UnknownValueError: It is no plain arithmetic on them, or returns no finite number.
    """
    names: dict[str, Any] = dict(arguments)
    try:
        value = _run(function.body, names)
        number = float(value)
    except UnknownValueError:
        raise
    except (TypeError, ValueError, ArithmeticError, LookupError, RecursionError) as error:
        raise UnknownValueError(f"{function.name}: {type(error).__name__}") from None
    if not math.isfinite(number):
        raise UnknownValueError(f"{function.name}: no finite number")
    return number


def _run(body: list[ast.stmt], names: dict[str, Any]) -> Any:
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


def _bind(target: ast.expr, value: Any, names: dict[str, Any]) -> None:
    if isinstance(target, ast.Name):
        names[target.id] = value
        return
    if not isinstance(target, ast.Tuple) or len(target.elts) != len(value):
        raise UnknownValueError("found a target that does not fit")
    for part, bound in zip(target.elts, value, strict=True):
        _bind(part, bound, names)


def _value(node: ast.expr, names: Mapping[str, object]) -> Any:
    """The value of an expression."""
    kind = _KINDS.get(type(node))
    if kind is None:
        raise UnknownValueError(f"found {type(node).__name__}")
    return kind(node, names)


def _constant(node: Any, names: Mapping[str, Any]) -> Any:
    if not isinstance(node.value, int | float | None):
        raise UnknownValueError("found a text")
    return node.value


def _negative(node: Any, names: Mapping[str, Any]) -> Any:
    if not isinstance(node.op, ast.USub):
        raise UnknownValueError("found an operator")
    return -_value(node.operand, names)


def _comparison(node: Any, names: Mapping[str, Any]) -> Any:
    if len(node.ops) != 1:
        raise UnknownValueError("found several comparisons")
    pair = _value(node.left, names), _value(node.comparators[0], names)
    _require_flat(pair)
    return _COMPARE[type(node.ops[0])](*pair)


def _binary(node: ast.BinOp, names: Mapping[str, object]) -> Any:
    left, right = _value(node.left, names), _value(node.right, names)
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        raise UnknownValueError("found no number")  # a tuple would be repeated
    if isinstance(node.op, ast.Pow):
        if not isinstance(right, int) or not 0 <= right <= 4:
            raise UnknownValueError("found a large power")
        value = left**right
    else:
        value = _BINARY[type(node.op)](left, right)
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise UnknownValueError("found a large number")
    return value


def _require_flat(values: Iterable[object]) -> None:
    """Refuses tuples of tuples: comparing two of these may take forever."""
    for value in values:
        if isinstance(value, tuple) and any(isinstance(part, tuple) for part in value):
            raise UnknownValueError("found a tuple of tuples")


def _attribute(value: object, name: str) -> Any:
    if isinstance(value, Sized):
        known = {"shape": value.shape, "ndim": len(value.shape), "itemsize": value.itemsize}
        return known[name]
    raise UnknownValueError(f"found an attribute {name:.40}")


def _call(node: ast.Call, names: Mapping[str, object]) -> Any:
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
    if not isinstance(tensor, Sized):
        raise UnknownValueError(f"found a method {node.func.attr:.40}")
    if node.func.attr == "size":
        return tensor.shape[arguments[0]] if arguments else tensor.shape
    known = {"numel": math.prod(tensor.shape), "nelement": math.prod(tensor.shape)}
    return {**known, "element_size": tensor.itemsize, "dim": len(tensor.shape)}[node.func.attr]


_KINDS: Mapping[type[ast.expr], Callable[[Any, Mapping[str, Any]], Any]] = {
    ast.Attribute: lambda node, names: _attribute(_value(node.value, names), node.attr),
    ast.BinOp: _binary,
    ast.Call: _call,
    ast.Compare: _comparison,
    ast.Constant: _constant,
    ast.IfExp: lambda node, names: _value(
        node.body if _value(node.test, names) else node.orelse, names
    ),
    ast.Name: lambda node, names: names[node.id],
    ast.Subscript: lambda node, names: _value(node.value, names)[_value(node.slice, names)],
    ast.Tuple: lambda node, names: tuple(_value(part, names) for part in node.elts),
    ast.UnaryOp: _negative,
}
"""The kinds of expressions that have a value."""
