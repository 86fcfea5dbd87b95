"""How much a policy rose, and the command that says it."""

from importlib.util import find_spec
from statistics import fmean

import pytest
from typer.testing import CliRunner

from kernel_gym.analysis.estimators import Estimate
from kernel_gym.cli import app
from kernel_gym.training.assess import Assessment, rise


def assessment(**rewards):
    kept = {name: [v for v in values if v is not None] for name, values in rewards.items()}
    tasks = {name: {"gym/reward": fmean(v), "rewards": rewards[name]} for name, v in kept.items()}
    return Assessment(0.0, 0.0, tasks, 4, "sim:gfx942", 0)


def test_the_rise_is_the_difference_of_means_over_tasks_and_masked_replies_do_not_count():
    before = assessment(a=[0.1, 0.3, None], b=[0.2, 0.2])
    after = assessment(a=[0.6, 0.6], b=[0.4, 0.6, None])
    change = rise(before, after, ["a", "b"])
    assert change.value == pytest.approx(0.35)
    assert change.low == pytest.approx(0.3)
    assert change.high == pytest.approx(0.4)
    assert rise(before, after, ["b"]) == Estimate(pytest.approx(0.3))
    assert rise(before, before, ["a", "b"]) == Estimate(0.0, 0.0, 0.0)


def test_an_assessment_survives_its_file(tmp_path):
    assessed = assessment(a=[0.1, None])
    assessed.write(tmp_path)
    assert Assessment.read(tmp_path) == assessed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("out = 'x'\nstep = 1\n", "key 'step': unknown"),
        ("out = 'x'\n[tasks]\ntrain = ['triton2triton/sofmax']\nheld_out = []\n", "did you mean"),
    ],
)
def test_the_command_refuses_bad_input_in_one_line(tmp_path, text, message):
    refused(tmp_path, text, message)


def test_vllm_is_refused_before_anything_runs_where_it_is_not_installed(tmp_path):
    pytest.importorskip("trl")
    if find_spec("vllm"):
        pytest.skip("vllm is installed")
    text = "out = 'x'\n[grpo]\nvllm = 'colocate'\n[tasks]\ntrain = ['a/b']\nheld_out = []\n"
    refused(tmp_path, text, "key 'grpo.vllm': vllm is not installed")


def refused(tmp_path, text, message):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    result = CliRunner().invoke(app, ["train", str(path)])
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
