"""Arithmetic of axes: what is computed, and what is refused."""

import pytest

from kernel_gym.imports.readers.expressions import (
    ExpressionError,
    evaluated,
    names_in,
    parsed_expression,
)

SIZES = {"heads": 32, "hidden": 4096}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("hidden // heads", 128),
        ("hidden / heads", 128),
        ("2 * (heads + 1) - 1", 65),
        ("heads ** 2 % 1000", 24),
        ("-heads + hidden", 4064),
    ],
)
def test_arithmetic_is_computed(text, value):
    assert evaluated(parsed_expression(text), SIZES) == value


def test_the_axes_of_an_expression_are_known():
    assert names_in(parsed_expression("hidden // heads + 1")) == {"hidden", "heads"}


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "heads.real",
        "[1][0]",
        "1.5 * heads",
        "heads if 1 else 2",
        "a b",
        "1" * 600,
    ],
)
def test_other_code_is_refused(text):
    with pytest.raises(ExpressionError, match=r"expected|at most"):
        parsed_expression(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("hidden / 3", "no integer"),
        ("hidden // (heads - 32)", "divides by zero"),
        ("heads - hidden", "expected a size"),
        ("2 ** 41", "exponent"),
        ("heads ** 40", "expected a size"),
        ("rows", "found the axis 'rows'"),
    ],
)
def test_a_value_that_is_no_size_is_refused(text, reason):
    with pytest.raises(ExpressionError, match=reason):
        evaluated(parsed_expression(text), SIZES)
