"""Only named kernels of a candidate are taken, and new kernels that they call."""

import ast

import pytest

from kernel_gym.tasks.importers import halves
from kernel_gym.tasks.importers.halves import split_halves
from kernel_gym.tasks.importers.predictions import PredictionError, read_predictions
from kernel_gym.tasks.importers.reader import CheckoutError
from kernel_gym.tasks.importers.splice import kernels_alone, splice

PRISTINE = """import triton

LIMIT = 3

@triton.jit
def one(x):
    return x

def check(x):
    return x == LIMIT
"""
CANDIDATE = """import os
LIMIT = 99

def check(x):
    return True

@triton.jit
def helper(x):
    return x + 1

@triton.jit
def one(x):
    return helper(x)

os._exit(0)
"""


def test_kernels_are_taken_and_nothing_else():
    whole = splice(PRISTINE, CANDIDATE, ["one"])
    compile(whole, "whole", "exec")
    assert "return helper(x)" in whole
    assert "return x + 1" in whole
    assert "LIMIT = 3" in whole
    assert "99" not in whole
    assert "return True" not in whole
    assert "_exit" not in whole


def test_a_kernel_that_is_missing_is_missing_in_the_whole():
    assert "def one" not in splice(PRISTINE, "x = 1", ["one"])
    assert splice(PRISTINE, "def f(:", ["one"]) == "def f(:"


def test_the_own_kernels_alone_splice_to_the_same_text():
    assert splice(PRISTINE, kernels_alone(PRISTINE, ["one"]), ["one"]) == PRISTINE


def test_a_file_has_two_halves_or_is_refused():
    separator = "#" * 146
    parts = split_halves("a.py", f"x = 1\n{separator}\ny = x\n")
    assert (parts.implementation, parts.tests, parts.line) == ("x = 1\n", "y = x\n", 2)
    for text in ("x = 1\n", f"{separator}\n{separator}\n", f"x = (\n{separator}\n"):
        with pytest.raises(CheckoutError, match=r"a\.py"):
            split_halves("a.py", text)


def test_names_that_tests_use():
    own = ast.parse("def f(): pass\nclass G: pass\nh = G.apply\nunused = G()\nz = 3\n")
    assert halves.tested_names(own, ast.parse("f(); G.apply(h)")) == ["f", "G", "h"]


def test_predictions_are_read_from_lines_and_lists(tmp_path):
    path = tmp_path / "p.jsonl"
    path.write_text('{"file": "a.py", "predict": "```python\\nx = 1\\n```"}\n')
    assert read_predictions(path) == {"a.py": "x = 1\n"}
    path.write_text('[{"path": "tasks/a.py", "content": "y"}]')
    assert read_predictions(path) == {"tasks/a.py": "y"}
    for text in ("{", '{"file": 3}', '["x"]'):
        path.write_text(text)
        with pytest.raises(PredictionError, match=r"p\.jsonl"):
            read_predictions(path)
