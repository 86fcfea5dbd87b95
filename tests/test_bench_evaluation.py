"""`kernel-gym bench evaluation`: the seconds of stages and processes add up to all seconds."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from kernel_gym.cli import app
from kernel_gym.commands.bench import evaluation


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    file = tmp_path_factory.mktemp("bench") / "softmax.py"
    file.write_text("def softmax(x):\n    return x.nothing\n")
    return file


def _run(source, *options):
    words = ["bench", "evaluation", "-t", "triton2triton/softmax", "--file", str(source)]
    result = CliRunner().invoke(app, [*words, "--count", "2", *options])
    assert result.exit_code == 0, result.output
    return result.output


def test_stages_and_processes_add_up(source):
    (row,) = json.loads(_run(source, "--json"))
    assert row["outcome"] == "runtime_error"
    assert list(row["stages"]) == ["screen", "build", "train", "close"]
    assert {"judge", "template", "recorder"} <= row["stages"]["close"].keys()
    total = sum(sum(stage.values()) for stage in row["stages"].values())
    assert total == pytest.approx(row["cpu_seconds"])
    assert row["cpu_seconds"] > 0


def test_the_table_has_a_row_for_each_stage(source):
    text = _run(source, "--profile")
    assert "triton2triton/softmax: runtime_error" in text
    for word in ("recorder", "screen", "build", "train", "close"):
        assert word in text


def test_a_process_that_spent_nothing_has_no_column(capsys):
    row = {"task": "t/t", "outcome": "passed", "cpu_seconds": 0.5, "wall_seconds": 0.5}
    idle = {f"idle_{number}": 0.0 for number in range(30)}
    evaluation._show({**row, "stages": {"build": {"recorder": 0.5, **idle}}}, profile=True)
    text = capsys.readouterr().out
    assert "recorder" in text
    assert "idle" not in text
