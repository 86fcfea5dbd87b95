"""The one-file examples run, and stay short enough to be read at once."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"


def play(*arguments):
    """Runs a program of this environment and returns what it printed."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        arguments, cwd=ROOT, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout


@pytest.mark.parametrize("name", ["evaluate_my_model", "train_grpo_minimal"])
def test_a_one_file_example_has_at_most_150_lines(name):
    assert len((EXAMPLES / f"{name}.py").read_text(encoding="utf-8").splitlines()) <= 150


def test_a_model_is_evaluated():
    printed = play(sys.executable, "examples/evaluate_my_model.py", "--turns", "1")
    assert "triton2triton/softmax turn 1: passed, reward 0.15" in printed
    assert "1 of 1 tasks solved" in printed


@pytest.mark.slow
def test_grpo_takes_a_step():
    arguments = ("--steps", "1", "--group", "2")
    printed = play(sys.executable, "examples/train_grpo_minimal.py", *arguments)
    assert "step 1: mean reward 0." in printed
    assert "most likely schedule: {'BLOCK': " in printed


def test_the_problem_of_the_example_has_a_baseline_that_passes():
    folder = "examples/add_a_problem"
    source = f"{folder}/softplus/baseline.py"
    printed = play(
        *f"kernel-gym --tasks-path {folder} check triton2triton/softplus {source}".split(),
        *"--device sim:gfx942 --seed 0 --json".split(),
    )
    assert '"outcome": "passed"' in printed


def test_the_notebook_runs_from_top_to_bottom(capsys):
    notebook = json.loads((EXAMPLES / "first_reward.ipynb").read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 4)
    cells = ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]
    names = {}
    for number, cell in enumerate(cells, start=1):
        exec(compile(cell, f"first_reward.ipynb, cell {number}", "exec"), names)
    printed = capsys.readouterr().out
    assert "wrong_values" in printed
    assert "passed 0.15 best speedup: 1.0" in printed
    assert not any(c.get("outputs") for c in notebook["cells"])  # a diff of results says nothing
