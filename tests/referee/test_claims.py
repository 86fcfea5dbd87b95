"""Ten planted claims: five true, five false. The referee must give ten right answers."""

from pathlib import Path

import pytest

import kernel_gym
from kernel_gym.evaluator import Evaluator
from kernel_gym.referee.claim import read_claim
from kernel_gym.referee.judge import Ruling, judge

HERE = Path(__file__).parent / "claims"
PACKAGE = Path(kernel_gym.__file__).parent
EXAMPLES, PROBLEMS = PACKAGE / "policies/examples", PACKAGE / "tasks/problems"

TRUE = {
    "swiglu": (EXAMPLES / "torch2triton/swiglu/3_good.py", None),
    "gelu": (HERE / "gelu_solution.json", None),
    "add_rms_norm": (
        EXAMPLES / "torch2triton/add_rms_norm/3_good.py",
        PROBLEMS / "add_rms_norm/baseline.py",
    ),
    "cross_entropy": (
        EXAMPLES / "torch2triton/cross_entropy/3_good.py",
        HERE / "cross_entropy_torch.py",
    ),
}
FALSE = {
    "data near zero only": ("gelu_near_zero", "gelu_near_zero.py", None, "beyond"),
    "wrong tail": ("gelu", "gelu_wrong_tail.py", PROBLEMS / "gelu/baseline.py", "is right"),
    "timing on one shape": (
        "swiglu",
        "swiglu_one_shape.py",
        None,
        "on derived shapes",
    ),
    "baseline slowed": (
        "softmax",
        "softmax_plain.py",
        HERE / "softmax_slowed.py",
        "the baseline was not slow",
    ),
    "cached output": ("gelu", "gelu_cached.py", PROBLEMS / "gelu/baseline.py", "is right"),
    "precision dropped": (
        "matmul",
        "matmul_half.py",
        PROBLEMS / "matmul/baseline.py",
        "is right",
    ),
}


ALWAYS = ("swiglu",)
"""The claim of each run; the others take five minutes. The test of the command has a false one."""


def marked(names):
    return [n if n in ALWAYS else pytest.param(n, marks=pytest.mark.sweep) for n in names]


@pytest.fixture(scope="module")
def evaluator():
    with Evaluator("sim:gfx942") as opened:
        yield opened


@pytest.mark.slow
@pytest.mark.parametrize("name", marked(TRUE))
def test_a_true_claim_holds(evaluator, name):
    kernel, baseline = TRUE[name]
    card = judge(read_claim(kernel, HERE / f"{name}.toml", baseline), evaluator)
    assert card.reasons == []
    assert card.ruling is Ruling.HOLDS


@pytest.mark.slow
@pytest.mark.sweep
def test_a_true_pair_holds(evaluator):
    card = judge(read_claim(HERE / "swish_new.py", HERE / "swish_pair.py"), evaluator)
    assert card.reasons == []
    assert card.ruling is Ruling.HOLDS


@pytest.mark.slow
@pytest.mark.parametrize("name", marked(FALSE))
def test_a_false_claim_does_not_hold_for_its_reason(evaluator, name):
    statement, kernel, baseline, failed = FALSE[name]
    card = judge(read_claim(HERE / kernel, HERE / f"{statement}.toml", baseline), evaluator)
    assert card.ruling is Ruling.FAILS
    (check,) = [check for check in card.checks if check.holds is False]
    assert failed in check.name


@pytest.mark.slow
@pytest.mark.sweep
def test_a_kernel_as_fast_as_the_formula_of_pytorch_cannot_be_judged(evaluator):
    kernel, baseline = HERE / "softmax_fused.py", HERE / "softmax_plain.py"
    card = judge(read_claim(kernel, HERE / "softmax.toml", baseline), evaluator)
    assert card.ruling is Ruling.OPEN
    (check,) = [check for check in card.checks if check.holds is not True]
    assert "the baseline was not slow" in check.name
