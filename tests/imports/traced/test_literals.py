"""Numbers of a graph become expressions of sizes, or are said to be none."""

import math

import pytest

from kernel_gym.imports.traced.literals import expression

POINTS = [
    {"a": 12, "b": 64},
    {"a": 1, "b": 64},
    {"a": 7, "b": 64},
    {"a": 13, "b": 64},
    {"a": 12, "b": 8},
    {"a": 12, "b": 65},
    {"a": 12, "b": 130},
    {"a": 5, "b": 31},
    {"a": 9, "b": 200},
]


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda a, b: 3, "3"),
        (lambda a, b: a, "a"),
        (lambda a, b: 4 * b, "b * 4"),
        (lambda a, b: a * b, "a * b"),
        (lambda a, b: a * a, "a * a"),
        (lambda a, b: a + b - 1, "a + b - 1"),
        (lambda a, b: -a, "-(a)"),
        (lambda a, b: (b + 1) // 2, "(b + 1) // 2"),
        (lambda a, b: b**-0.5, "1 / b**0.5"),
        (lambda a, b: 2.5, "2.5"),
        (lambda a, b: 1e-6, "1e-06"),
    ],
)
def test_the_expression_is_found(function, text):
    assert expression([function(**point) for point in POINTS], POINTS) == text


def test_a_product_of_strided_sizes_is_found():
    values = [point["a"] * ((point["b"] - 3) // 2 + 1) for point in POINTS]
    text = expression(values, POINTS)
    assert text is not None
    assert [eval(text, {}, dict(point)) for point in POINTS] == values


def test_what_is_no_simple_function_is_not_guessed():
    assert expression([math.factorial(point["a"]) for point in POINTS], POINTS) is None
