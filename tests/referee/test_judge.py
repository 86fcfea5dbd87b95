"""The referee's own data, and the part of a gain that must remain on derived shapes."""

import math
from pathlib import Path

import pytest

from kernel_gym.formatting import factor
from kernel_gym.judge.timing.torch_model import FORMULA_FACTOR
from kernel_gym.records import Outcome, Stage
from kernel_gym.referee.claim import read_claim
from kernel_gym.referee.domain import OWN, own_distributions
from kernel_gym.referee.judge import (
    Card,
    CardStatement,
    Ruling,
    _against_torch,
    _beyond,
    _domain,
    _faster,
    _ruling,
    _without_limits,
)
from kernel_gym.tasks.workload import Split
from tests.records import failure, passing, workload

HERE = Path(__file__).parent / "claims"
STATEMENT = (HERE / "gelu.toml").read_text()


def claim(folder, reference, distributions=""):
    """A claim with a reference and stated distributions."""
    text = STATEMENT.replace("shapes =", f"{distributions}\nshapes =", 1)
    (folder / "s.toml").write_text(text)
    (folder / "gelu_reference.py").write_text(reference)
    (folder / "k.py").write_text("x")
    return read_claim(folder / "k.py", folder / "s.toml")


PLAIN = "def gelu(x):\n    return x.sigmoid() * x\n"


def test_the_referee_adds_its_distributions_to_a_narrowed_list(tmp_path):
    narrowed = claim(tmp_path, PLAIN, 'distributions = ["tiny", "sparse"]')
    check = _domain(narrowed)
    assert check.holds
    assert narrowed.problem.distributions == (*OWN, "sparse")
    assert "the kernel is judged on normal" in check.text


def test_a_claim_with_the_usual_list_is_judged_on_it(tmp_path):
    usual = claim(tmp_path, PLAIN)
    assert _domain(usual).holds
    assert usual.problem.distributions == OWN


def test_data_without_an_answer_are_left_out_and_named(tmp_path):
    root = claim(tmp_path, "import torch\n\n\ndef gelu(x):\n    return torch.sqrt(x - 20)\n")
    check = _domain(root)
    assert own_distributions(root.problem) == ("offset",)
    assert "no answer on normal, tiny, large" in check.text


def test_a_reference_with_answers_on_its_authors_data_only_cannot_be_judged(tmp_path):
    code = "import torch\n\n\ndef gelu(x):\n    near = x.abs() < 1e-6\n"
    code += "    return torch.where(near, x, torch.full_like(x, float('nan')))\n"
    check = _domain(claim(tmp_path, code, 'distributions = ["sparse"]'))
    assert check.holds is False
    assert "it has none on any of normal" in check.text


def test_a_failure_on_data_that_the_claim_left_out_is_a_statement(tmp_path):
    narrowed = claim(tmp_path, PLAIN, 'distributions = ["tiny"]')
    failed = failure(Outcome.WRONG_VALUES, Stage.TRAIN, workloads=[workload(passed=False)])
    check = _beyond(narrowed, failed)
    assert check.holds is False
    assert check.name.endswith("that the claim states (tiny)")
    assert "not on normal" in check.text
    assert _beyond(claim(tmp_path, PLAIN), failed) is None


@pytest.mark.parametrize(
    ("claimed", "derived", "stated", "holds"),
    [
        (2.0, 1.0003, None, False),
        (2.0, 1.40, None, False),
        (2.0, 1.42, None, True),
        (3.0, 1.15, 1.2, True),
        (3.0, 1.05, 1.2, False),
        (1.1, 1.0003, 1.0, True),
        (1.1, 0.99, 1.0, False),
    ],
)
def test_half_of_the_claimed_gain_remains_on_derived_shapes(claimed, derived, stated, holds):
    record = passing(claimed, derived)
    rows = (workload(speedup=claimed), workload(Split.UNSEEN, speedup=derived))
    lows = {"speedup_low": claimed, "unseen_speedup_low": derived, "workloads": rows}
    checks = _faster(record.model_copy(update=lows), "the baseline", stated)
    assert [check.holds for check in checks] == [True, holds]
    least = math.sqrt(stated or claimed)
    assert (f"at least {factor(least)} is needed" in checks[1].text) is (least > 1)


def timed(claimed, derived):
    """An evaluation with these lower bounds."""
    rows = (workload(speedup=claimed), workload(Split.UNSEEN, speedup=derived))
    lows = {"speedup_low": claimed, "unseen_speedup_low": derived, "workloads": rows}
    return passing(claimed, derived).model_copy(update=lows)


@pytest.mark.parametrize(
    ("low", "error", "holds"),
    [
        (1.01, FORMULA_FACTOR, True),
        (0.965, FORMULA_FACTOR, None),
        (0.73, FORMULA_FACTOR, None),
        (0.72, FORMULA_FACTOR, False),
        (0.481, FORMULA_FACTOR, False),
        (0.965, 1.0, False),  # both sides are measured
        (0.999, 1.0, False),
    ],
)
def test_a_claim_slower_than_pytorch_is_refused_beyond_the_error_of_the_formula(low, error, holds):
    check = _against_torch(timed(low, low), error)
    assert check.holds is holds
    assert (f"may be wrong by {factor(FORMULA_FACTOR)}" in check.text) is (holds is None)


@pytest.mark.parametrize(
    ("claimed", "derived", "error", "holds"),
    [
        (1.1, 0.99, FORMULA_FACTOR, [True, None]),
        (0.97, 0.97, FORMULA_FACTOR, [None, None]),
        (0.7, 1.2, FORMULA_FACTOR, [False, True]),
        (3.0, 0.99, FORMULA_FACTOR, [True, False]),  # fast on its author's shapes alone
        (3.0, 1.5, FORMULA_FACTOR, [True, False]),
        (0.97, 0.97, 1.0, [False, False]),
    ],
)
def test_a_miss_is_open_only_if_the_error_of_the_clocks_explains_all_of_it(
    claimed, derived, error, holds
):
    checks = _faster(timed(claimed, derived), "eager PyTorch", None, error)
    assert [check.holds for check in checks] == holds


def test_the_claimed_factor_is_compared_with_a_gain_beyond_the_limits_of_a_speedup():
    rows = (workload(speedup=20.0), workload(speedup=80.0), workload(Split.UNSEEN, speedup=3.0))
    record = passing(10.0, 3.0).model_copy(update={"workloads": rows})
    assert _without_limits(record) == pytest.approx(40.0)


def statements(*holds):
    return [CardStatement(f"statement {n}", one, "why") for n, one in enumerate(holds)]


@pytest.mark.parametrize(
    ("holds", "ruling", "reasons"),
    [
        ((True, True), Ruling.HOLDS, []),
        ((True, None), Ruling.OPEN, ["statement 1: why"]),
        ((False, None), Ruling.FAILS, ["statement 0: why"]),
    ],
)
def test_a_statement_that_cannot_be_told_leaves_the_claim_open(tmp_path, holds, ruling, reasons):
    checks = statements(*holds)
    assert _ruling(checks, {}) is ruling
    one = claim(tmp_path, PLAIN)
    card = Card(ruling, tuple(checks), {}, one, "sim:gfx942", "modelled", {})
    assert card.reasons == reasons
