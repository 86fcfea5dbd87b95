"""Arithmetic of axes, such as `head_dim // 2`, without the evaluation of code."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping

_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_SIGNS: Mapping[type[ast.unaryop], Callable[[int], int]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}
MAX_TEXT_CHARACTERS = 500
MAX_SIZE = 1 << 40
MAX_EXPONENT = 40


class ExpressionError(ValueError):
    """A text is no arithmetic of axes. The message says what was found and what is expected."""


def parsed_expression(text: str) -> ast.expr:
    """Parses the expression of an axis.

    Raises:
        ExpressionError: It has anything but integers, names, `+ - * / // % **` and parentheses.
    """
    if len(text) > MAX_TEXT_CHARACTERS:
        raise ExpressionError(
            f"found {len(text)} characters, at most {MAX_TEXT_CHARACTERS} are taken"
        )
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ExpressionError(f"found {text[:60]!r}, expected arithmetic of axes") from None
    for node in ast.walk(tree):
        if not _is_arithmetic(node):
            raise ExpressionError(
                f"found {type(node).__name__} in {text[:60]!r}, expected integers, names of axes "
                "and + - * / // % **"
            )
    return tree


def names_in(tree: ast.expr) -> set[str]:
    """Returns the axes that an expression uses."""
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def evaluated(tree: ast.expr, sizes: Mapping[str, int]) -> int:
    """Returns the value of a parsed expression.

    Args:
        tree: What `parsed_expression` returned.
        sizes: The axes by name.

    Raises:
        ExpressionError: A name is unknown, a quotient is no integer, or the value is no size.
    """
    value = _value(tree, sizes)
    if not 0 <= value <= MAX_SIZE:
        raise ExpressionError(f"{ast.unparse(tree)} is {value}, expected a size")
    return value


def _is_arithmetic(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return type(node.value) is int and 0 <= node.value <= MAX_SIZE
    if isinstance(node, ast.BinOp):
        return type(node.op) in {*_OPERATORS, ast.Div, ast.Pow}
    if isinstance(node, ast.UnaryOp):
        return type(node.op) in _SIGNS
    return isinstance(node, ast.Name | ast.operator | ast.unaryop | ast.expr_context)


def _value(node: ast.expr, sizes: Mapping[str, int]) -> int:
    if isinstance(node, ast.Constant):
        assert isinstance(node.value, int)
        return node.value
    if isinstance(node, ast.Name):
        if node.id not in sizes:
            raise ExpressionError(f"found the axis {node.id!r}, expected one of {sorted(sizes)}")
        return sizes[node.id]
    if isinstance(node, ast.UnaryOp):
        return _SIGNS[type(node.op)](_value(node.operand, sizes))
    assert isinstance(node, ast.BinOp)
    left, right = _value(node.left, sizes), _value(node.right, sizes)
    if isinstance(node.op, ast.Pow):
        if not 0 <= right <= MAX_EXPONENT or abs(left) > MAX_SIZE:
            raise ExpressionError(f"found the exponent {right}, expected 0 to {MAX_EXPONENT}")
        return int(left**right)
    if right == 0 and isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mod):
        raise ExpressionError(f"{ast.unparse(node)} divides by zero")
    if isinstance(node.op, ast.Div):
        if left % right:
            raise ExpressionError(f"{ast.unparse(node)} is no integer at {dict(sizes)}")
        return left // right
    return _OPERATORS[type(node.op)](left, right)
