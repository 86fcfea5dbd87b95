"""`kernel-gym package` on a run whose task compares with another kernel than PyTorch."""

from __future__ import annotations

from typer.testing import CliRunner

from kernel_gym.cli import app
from kernel_gym.packages import read_evidence

RUN = ["eval", "--policy", "examples", "--suite", "triton2triton/softmax"]
DEVICE = ["--device", "sim:gfx942", "--seed", "3"]


def test_a_kernel_of_another_task_of_the_problem_is_judged_again(tmp_path):
    run, made = tmp_path / "run", tmp_path / "made"
    played = CliRunner().invoke(app, [*RUN, *DEVICE, "--out", str(run)])
    assert played.exit_code == 0, played.output
    package = ["package", str(run), "--out", str(made), "--seed", "3", "--task"]
    refused = CliRunner().invoke(app, [*package, "triton2triton/softmax"])
    assert refused.exit_code == 2
    assert "give --task torch2triton/softmax" in refused.output.replace("\n", " ")
    assert not made.exists()
    done = CliRunner().invoke(app, [*package, "torch2triton/softmax"])
    assert done.exit_code == 0, done.output
    assert read_evidence(made).task == "torch2triton/softmax"
    missing = CliRunner().invoke(app, [*package, "torch2triton/relu_squared"])
    assert "no kernel for torch2triton/relu_squared passed" in missing.output.replace("\n", " ")


def test_a_source_is_not_judged_for_a_task_that_no_package_takes(tmp_path):
    source = tmp_path / "kernel.py"
    source.write_text("no kernel")
    command = ["package", str(source), "--task", "triton2triton/softmax", *DEVICE]
    refused = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "made")])
    assert refused.exit_code == 2
    assert "give --task torch2triton/softmax" in refused.output.replace("\n", " ")
