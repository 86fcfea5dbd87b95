"""Formulas of a checkout: arithmetic has a value, and nothing else takes time or memory."""

from __future__ import annotations

import ast

import pytest

from kernel_gym.exchange.arithmetic import SizedTensor, UnknownValueError, result_of

DOUBLED = "".join(f"    {name} = ({name}, {name})\n" for name in "ab" * 40)


def function(body: str) -> ast.FunctionDef:
    (tree,) = ast.parse(f"def f(x):\n{body}").body
    assert isinstance(tree, ast.FunctionDef)
    return tree


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ("    n = x.numel() * x.element_size()\n    return 2 * n / 1e9", 2 * 96 / 1e9),
        ("    rows, columns = x.shape\n    return rows * columns", 24),
        ("    return x.shape[1] if len(x.shape) == 2 else 0", 6),
        ("    return max(x.size(0), 5) + sum((1, 2))", 8),
    ],
)
def test_arithmetic_on_sizes_has_a_value(body, value):
    assert result_of(function(body), {"x": SizedTensor((4, 6), 4)}) == pytest.approx(value)


@pytest.mark.parametrize(
    "body",
    [
        "    return len((1,) * 10 ** 4 * 10 ** 4 * 10 ** 4)",
        f"    a = (1,)\n    b = (1,)\n{DOUBLED}    return 1 if a == b else 0",
        f"    a = (1,)\n    b = (1,)\n{DOUBLED}    return len(max(a, b))",
        "    n = 2\n" + "    n = n ** 4\n" * 9 + "    return n",
        "    return __import__('os')",
        "    return x.shape.__class__",
        "    while 1: pass",
        "    return 1 / 0",
        "    return 1e308 * 10",
    ],
)
def test_anything_else_has_none(body):
    with pytest.raises(UnknownValueError):
        result_of(function(body), {"x": SizedTensor((4, 6), 4)})
