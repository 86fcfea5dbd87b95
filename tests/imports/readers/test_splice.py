"""Only named kernels of a candidate are taken, and new kernels that they call."""

import ast

import pytest

from kernel_gym.imports.predictions import PredictionError, read_predictions
from kernel_gym.imports.readers import halves
from kernel_gym.imports.readers.base import CheckoutError
from kernel_gym.imports.readers.halves import (
    Halves,
    autotuned_names,
    launchers_of,
    parsed,
    split_halves,
    with_functions,
)
from kernel_gym.imports.readers.splice import kernels_alone, splice

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
    assert read_predictions(path) == {"a.py": ["x = 1\n"]}
    path.write_text('[{"path": "tasks/a.py", "content": "y"}]')
    assert read_predictions(path) == {"tasks/a.py": ["y"]}
    for text in ("{", '{"file": 3}', '["x"]'):
        path.write_text(text)
        with pytest.raises(PredictionError, match=r"p\.jsonl"):
            read_predictions(path)


TUNED = """
import triton


@triton.autotune(configs=[], key=["n"])
@triton.jit
def tuned(x, n, BLOCK: int):
    pass


@triton.jit
def plain(x):
    pass
"""
TUNED_TESTS = """
import math as maths
import pytest

STEP = 4
UNUSED = 5


def blocks(n, size):
    return maths.ceil(n / size) * STEP


def launch(x, n):
    tuned[lambda meta: (blocks(n, meta["BLOCK"]),)](x, n)


def run_benchmark(x):
    tuned[(1,)](x, 1)


def test_tuned():
    launch(None, 3)
"""


def test_functions_that_launch_autotuned_kernels_are_taken_with_what_they_need():
    implementation, tests = (parsed("a.py", text) for text in (TUNED, TUNED_TESTS))
    assert autotuned_names(implementation) == ["tuned"]
    assert launchers_of(tests, ["tuned"]) == ["launch"]
    assert launchers_of(tests, ["plain"]) == []
    text = with_functions(Halves(TUNED, TUNED_TESTS, 0), ["launch"])
    assert text.startswith(TUNED.rstrip())
    taken = text[len(TUNED) :]
    assert all(one in taken for one in ("def launch", "def blocks", "STEP = 4", "math as maths"))
    assert not any(one in taken for one in ("UNUSED", "test_tuned", "run_benchmark", "pytest"))
    assert with_functions(Halves(TUNED, TUNED_TESTS, 0), []) == TUNED
