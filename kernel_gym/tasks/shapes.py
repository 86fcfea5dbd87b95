"""Shapes as texts in terms of a workload's dimensions. Prompts show these texts.

Example:
    >>> shape_of("rows, cols / 128", {"rows": 3, "cols": 256})
    (3, 2)
    >>> shape_of("ceil(n / 128)", {"n": 130})
    (2,)
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from math import ceil

_OPERATORS: Mapping[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: lambda a, b: Fraction(a // b),
}


def shape_of(text: str, dims: Mapping[str, int]) -> tuple[int, ...]:
    """Returns the shape of a text such as "batch, kv_heads * group, head_dim".

    Args:
        text: Sizes separated by commas: integers and names, joined by + - * / // and ceil(...).
        dims: The values of the names.

    Raises:
        ValueError: A name is unknown, a size is not an integer, or the text is malformed.
    """
    sizes = [_value(node, dims, text) for node in _parsed(text)]
    if any(size.denominator != 1 for size in sizes):
        raise ValueError(f"shape {text!r}: found {[*map(str, sizes)]}, expected whole numbers")
    return tuple(int(size) for size in sizes)


@lru_cache(maxsize=4096)
def _parsed(text: str) -> tuple[ast.expr, ...]:
    try:
        parsed = ast.parse(f"[{text}]", mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"shape {text!r}: {error.msg}") from error
    assert isinstance(parsed, ast.List)
    return tuple(parsed.elts)


def _value(node: ast.expr, dims: Mapping[str, int], text: str) -> Fraction:
    match node:
        case ast.Constant(value=int(number)):
            return Fraction(number)
        case ast.Name(id=name) if name in dims:
            return Fraction(dims[name])
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left, dims, text), _value(right, dims, text))
        case ast.Call(func=ast.Name(id="ceil"), args=[inner], keywords=[]):
            return Fraction(ceil(_value(inner, dims, text)))
    raise ValueError(f"shape {text!r}: found {ast.unparse(node)!r}, expected one of {[*dims]}")
