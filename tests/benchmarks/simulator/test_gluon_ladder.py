"""Ten steps of a matrix product in Gluon on gfx950: right, and in the stored order of times."""

from pathlib import Path

import pytest

from benchmarks.simulator.gluon_ladder import (
    EXAMPLES,
    PAGE,
    PUBLISHED,
    SHAPE,
    STORED,
    GluonLadder,
    page_text,
    reason,
    run_step,
)
from kernel_gym.errors import InputError
from kernel_gym.sim.constants import SAME_TIMES

ROOT = Path(__file__).parents[3]
ODD, SMALL = (128, 224, 592), (40, 72, 208)
LEVEL = 1.05
"""Steps whose times differ by less than this factor have no order."""
WITHOUT_GAIN = {"v5_registers_ahead", "v7_halves", "v8_quarters", "v9_near_tiles"}
"""Steps that are no gain in the model. The page says that three of them are gains on the GPU."""


@pytest.fixture(scope="module")
def stored():
    return GluonLadder.model_validate_json((ROOT / STORED).read_text(encoding="utf-8"))


def test_each_step_is_a_file_with_a_reason():
    files = sorted(path.stem for path in EXAMPLES.glob("v*.py"))
    assert files == list(PUBLISHED)
    assert all(20 < len(reason(name)) < 100 for name in files)


def test_stored_steps_are_of_this_model_and_on_the_page(stored):
    assert stored.timing_model in SAME_TIMES["gfx950"]
    assert [step.name for step in stored.steps] == list(PUBLISHED)
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    assert page_text(text, stored.steps) == text


def test_stored_steps_get_faster_one_by_one(stored):
    for before, now in zip(stored.steps, stored.steps[1:], strict=False):
        if now.name in WITHOUT_GAIN:
            assert now.modelled_us < before.modelled_us * LEVEL
        else:
            assert now.modelled_us < before.modelled_us


def test_stored_rates_are_near_the_published_ones(stored):
    m, n, k = SHAPE
    for step in stored.steps:
        rate = 2 * m * n * k / step.modelled_us / 1e6
        assert rate == pytest.approx(PUBLISHED[step.name], rel=0.17)


@pytest.mark.slow
def test_a_step_is_right_without_a_finding_of_an_audit():
    assert run_step("v4_two_tiles", SMALL, exact=True) > 0


@pytest.mark.sweep
def test_a_step_with_wrong_values_is_told(tmp_path, monkeypatch):
    text = (EXAMPLES / "v0_plain.py").read_text(encoding="utf-8")
    wrong = text.replace("total.to(gl.float16)", "(total * 1.01).to(gl.float16)")
    assert wrong != text
    (tmp_path / "v0_plain.py").write_text(wrong, encoding="utf-8")
    monkeypatch.setattr("benchmarks.simulator.gluon_ladder.EXAMPLES", tmp_path)
    with pytest.raises(InputError, match="not close"):
        run_step("v0_plain", SMALL, exact=True)


@pytest.mark.sweep
@pytest.mark.parametrize("name", PUBLISHED)
def test_every_step_is_right_on_odd_sizes(name):
    for shape in (ODD, (5, 3, 1), (300, 260, 200)):
        run_step(name, shape, exact=True)


@pytest.mark.sweep
def test_stored_times_are_those_of_the_model(stored):
    times = {step.name: step.modelled_us for step in stored.steps}
    for name in ("v0_plain", "v4_two_tiles", "v8_quarters"):
        assert run_step(name, SHAPE) * 1e6 == pytest.approx(times[name], rel=0.01)
