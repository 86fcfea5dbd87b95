"""Evaluates integer expressions of assembler text: numbers in all bases, and arithmetic."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from functools import lru_cache

MAX_EXPRESSION_CHARACTERS = 200
MAX_EXPRESSION_BITS = 64
_CHARACTERS = re.compile(r"[0-9a-fA-FxXbBoO+\-*|&^~<>()\s]+")
_BINARY: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
_UNARY: dict[type[ast.unaryop], Callable[[int], int]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}


@lru_cache(maxsize=4096)
def integer(text: str) -> int:
    """The value of an integer expression, such as ``0x3f70`` or ``(1 << 4) | 2``.

    Args:
        text: The expression, with all symbols replaced.

    Raises:
        ValueError: If it is not an expression, is too long, or a part of it has more than 64 bits.
    """
    try:
        return int(text, 0)
    except ValueError:
        pass
    if len(text) > MAX_EXPRESSION_CHARACTERS or not _CHARACTERS.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is no integer expression")
    try:
        return _value(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f"{text[:40]!r} is no integer expression") from error


def _value(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return _bounded(node.value)
    if isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
        return _bounded(_UNARY[type(node.op)](_value(node.operand)))
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        left, right = _value(node.left), _value(node.right)
        if isinstance(node.op, ast.LShift) and right > MAX_EXPRESSION_BITS:
            raise ValueError("a shift by more than 64 bits")
        return _bounded(_BINARY[type(node.op)](left, right))
    raise ValueError("not an integer expression")


def _bounded(value: int) -> int:
    if value.bit_length() > MAX_EXPRESSION_BITS:
        raise ValueError("an integer of more than 64 bits")
    return value
