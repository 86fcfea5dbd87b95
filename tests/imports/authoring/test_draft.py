"""Drafts of problems from traced code: the category that is written."""

from types import SimpleNamespace

import pytest

from kernel_gym.imports.authoring.draft import _category, _parameter


@pytest.mark.parametrize(
    ("operators", "category"),
    [
        (("aten.silu", "aten.mul"), "Math"),
        (("aten.argmax",), "Reduce-and-scan"),
        (("aten.argsort", "aten.mul"), "Index"),
        (("aten.mm",), "MatMul"),
        (("aten.mm", "aten.add", "aten.sum", "aten.mul"), "Fusion"),
    ],
)
def test_operators_decide_the_category_and_arguments_do_not(operators, category):
    forward = [SimpleNamespace(op=op) for op in ("argument", *operators)]
    assert _category(SimpleNamespace(forward=forward)) == category


@pytest.mark.parametrize(
    ("spread", "drawn"),
    [
        ({"mean": -0.5, "std": 0.12, "shape": [1, 2]}, "values.weight(0.727, "),
        ({"mean": -0.5, "std": 0.12, "shape": [32, 2]}, "values.around(-0.5, 0.12, "),
        ({"mean": 0.0, "std": 0.1, "shape": [32, 100]}, "values.weight(1.0, "),
        ({"mean": 0.0, "std": 1e-20, "shape": [32, 100]}, "values.weight(1.0, "),
        ({"unset": True, "constant": True, "shape": [32, 100]}, "values.weight(1.0, "),
        ({"mean": 1.0, "std": 0.0, "constant": True, "shape": [100]}, "values.around(1.0, 0.3, "),
    ],
    ids=["two numbers", "a mean", "a layer", "memory of zeros", "reserved", "ones"],
)
def test_a_parameter_is_drawn_like_the_original_as_far_as_its_values_tell(spread, drawn):
    shape = tuple(map(str, spread["shape"]))
    node = SimpleNamespace(name="weight", dtype="float32", shape=shape)
    assert _parameter(node, {"constant": False, **spread}).startswith(drawn)
