"""Packages in whole models on the simulated GPU: parity, times, planted faults and bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from kernel_gym.cli import app
from kernel_gym.errors import InputError
from kernel_gym.evaluator import Evaluator
from kernel_gym.packages.evidence import PackageError, evidence_of
from kernel_gym.packages.models import child, deploy, measure
from kernel_gym.packages.models.build import OMITTED, build, read_config, tiny_config
from kernel_gym.packages.write import write_package
from kernel_gym.records import Outcome
from kernel_gym.tasks import get_task

DEVICE = "sim:gfx942"
SOURCE = Path("benchmarks/deployment/rms_norm.py").read_text(encoding="utf-8")
WRONG = SOURCE.replace(
    "    rows, cols = x.shape\n", "    rows, cols = x.shape\n    eps += (cols == 192)\n"
)
"""Wrong for rows of 192 alone, which is no workload of the task."""
CONFIG = {
    "model_type": "llama",
    "hidden_size": 192,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 256,
    "max_position_embeddings": 256,
}


@pytest.fixture
def config(tmp_path):
    """A file with the configuration of a model with rows of 192."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG))
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    "source",
    [pytest.param(SOURCE, id="right", marks=pytest.mark.sweep), pytest.param(WRONG, id="wrong")],
)
def test_parity_shows_a_kernel_that_is_wrong_where_its_task_does_not_look(tmp_path, config, source):
    task = get_task("torch2triton/rms_norm")
    with Evaluator(device=DEVICE, seed=3) as evaluator:
        evaluation = evaluator.evaluate(task, source)
    assert evaluation.outcome is Outcome.PASSED
    evidence = evidence_of(task, evaluation, source, DEVICE, "gfx942")
    sure = tuple(row.model_copy(update={"low": 2.0}) for row in evidence.workloads)
    evidence = evidence.model_copy(update={"workloads": sure})  # so that the kernel runs
    write_package(tmp_path / "package", task, source, evidence)
    deployment = deploy(tmp_path / "package", str(config), DEVICE)
    assert deployment.replaced == 5
    assert deployment.parity is (source is SOURCE), deployment
    assert all(phase.kernel_calls == phase.calls for phase in deployment.phases)
    prefill, decode = deployment.phases
    if source is SOURCE:
        assert deployment.tokens.equal == 64
        assert prefill.gain_low == pytest.approx(prefill.gain_high)
        assert decode.gain == pytest.approx(decode.predicted_gain, rel=0.05)
        assert decode.gain > 1.1
    else:
        assert not any(part.right for part in deployment.closeness)


@pytest.mark.slow
@pytest.mark.sweep
def test_a_kernel_that_is_faster_alone_and_slower_in_the_model_is_shown_as_such(tmp_path, write):
    examples = Path("kernel_gym/policies/examples/torch2triton/cross_entropy/3_good.py")
    folder = write(tmp_path / "p", "torch2triton/cross_entropy", examples.read_text())
    deployment = deploy(folder, "llama", DEVICE)
    (loss,) = deployment.phases
    assert loss.operator_gain > 1 > loss.gain
    assert loss.note == "faster alone and slower in the model"
    assert deployment.parity


@pytest.mark.parametrize(("problem", "fused"), [("softmax", True), ("swiglu", False)])
def test_nothing_is_predicted_for_an_operation_inside_a_fused_one(
    load, monkeypatch, problem, fused
):
    monkeypatch.setattr(measure, "MEASURED_TOKENS", 64)
    monkeypatch.setattr(measure, "MEASURED_CALLS", 1)
    config = tiny_config("llama", max_position_embeddings=64)
    (prefill,) = child.compare(load(problem), config, "cpu", "cpu", decode=False).phases
    assert prefill.operator_gain > 0
    assert (prefill.predicted_gain is None, prefill.share == 0.0) == (fused, fused)


def test_the_command_reports_and_its_exit_code_is_parity(tmp_path, write):
    folder = write(tmp_path / "p", "torch2triton/geglu")
    done = CliRunner().invoke(app, ["deploy", str(folder), "--model", "gemma", "-d", "cpu"])
    assert done.exit_code == 1, done.output
    assert "not replaced: its activation is" in done.output
    assert "parity: NO" in done.output


def test_a_package_that_cannot_be_put_into_models_is_refused(tmp_path, write):
    folder = write(tmp_path / "p", "torch2triton/rms_norm")
    (folder / "README.md").write_text("other")
    with pytest.raises(PackageError, match=r"README\.md has another content"):
        deploy(folder, "llama", "cpu")
    with pytest.raises(PackageError, match="has no layers of models"):
        deploy(write(tmp_path / "q", "torch2triton/transpose"), "llama", "cpu")
    with pytest.raises(PackageError, match="expected a package"):
        deploy(tmp_path, "llama", "cpu")


def test_a_model_that_cannot_be_built_is_refused_by_name(tmp_path, load):
    broken = tmp_path / "broken.json"
    for text, message in {
        "{": r"broken\.json",
        "[]": "no model_type",
        json.dumps({"model_type": "no_such_model"}): "no_such_model",
    }.items():
        broken.write_text(text)
        with pytest.raises(InputError, match=message):
            read_config(str(broken))
    with pytest.raises(InputError, match="no_such_model"):
        read_config("no_such_model")
    broken.write_text(json.dumps(CONFIG | {"num_attention_heads": 0}))
    with pytest.raises(InputError, match="llama"):
        child.compare(load("rms_norm"), read_config(str(broken)), "cpu", "cpu")
    with pytest.raises(InputError, match="gpt2: rms_norm is computed in none of its modules"):
        child.compare(load("rms_norm"), read_config("gpt2"), "cpu", "cpu")


def test_a_refusal_by_the_process_reaches_the_caller(tmp_path, write):
    with pytest.raises(InputError, match="no_such_model"):
        deploy(write(tmp_path / "p", "torch2triton/rms_norm"), "no_such_model", "cpu")


def test_a_file_asks_for_packed_weights_and_for_no_other_quantization(tmp_path, load):
    path = tmp_path / "config.json"
    for method, kept in {"bitnet": True, "gptq": False}.items():
        quantization = {"quant_method": method, "linear_class": "bitlinear"}
        path.write_text(json.dumps(CONFIG | {"quantization_config": quantization}))
        config = read_config(str(path))
        assert getattr(config, OMITTED, "") == ("" if kept else method)
        model = build(config, torch.bfloat16, "sdpa")
        kinds = {type(one).__name__ for one in model.modules() if hasattr(one, "in_features")}
        assert ("BitLinear" in kinds) is kept
        assert isinstance(model.lm_head, torch.nn.Linear)
    with pytest.raises(InputError, match=r"none of its modules: it is built without .* 'gptq'"):
        child.compare(load("w4a16_matmul"), config, "cpu", "cpu")
