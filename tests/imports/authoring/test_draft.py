"""Drafts of problems from traced code: the category that is written."""

from types import SimpleNamespace

import pytest

from kernel_gym.imports.authoring.draft import _category


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
