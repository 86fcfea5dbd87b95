"""Packages that are written: they load through `kernels` and run on the simulated GPU."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest

from kernel_gym.evaluator import Evaluator
from kernel_gym.packages.evidence import PackageError, evidence_of, read_evidence
from kernel_gym.packages.verify import changed_files
from kernel_gym.packages.write import write_package
from kernel_gym.records import Outcome
from kernel_gym.tasks import get_task

CALL = """
from pathlib import Path
import torch
from kernels import get_local_kernel
module = get_local_kernel(Path({folder!r}), backend={backend!r}, trust_remote_code=True)
x = torch.randn(64, 4096, device={device!r}).half()
weight = torch.ones(4096, device={device!r}).half()
out, _ = module.add_rms_norm(x, x, weight, 1e-5)
right = torch.nn.functional.rms_norm((2 * x.float()), (4096,), eps=1e-5)
print("reason", repr(module.reason(x, x, weight, 1e-5)))
print("short", repr(module.reason(x, x, weight[1:], 1e-5)))
print("flat", repr(module.reason(x[0], x[0], weight, 1e-5)))
print("error", (out.float() - right).abs().max().item())
"""


def test_the_files_are_those_of_the_evidence(package):
    evidence = read_evidence(package / "made")
    assert changed_files(package / "made", evidence) == []
    assert evidence.task == "torch2triton/add_rms_norm"
    assert {"build/torch-rocm/candidate.py", "build/torch-cpu/reference.py"} <= set(evidence.files)
    assert len(evidence.workloads) > 6


@pytest.mark.parametrize("low", [2.0, 0.5])
def test_the_kernel_runs_on_the_gpu_where_it_was_faster(package, low):
    pytest.importorskip("kernels")
    facts = package / "made/build/torch-rocm/facts.json"
    changed = json.loads(facts.read_text())
    changed["workloads"] = [dict(row, low=low) for row in changed["workloads"]]
    facts.write_text(json.dumps(changed))
    text = CALL.format(folder=str(package / "made"), backend="rocm", device="cuda")
    printed = _run(package, text, ["-m", "kernel_gym", "sim", "--"])
    assert ("reason ''" in printed) == (low > 1), printed
    assert "short 'weight has the shape [4095], the kernel takes [4096]'" in printed
    assert "flat 'x has 1 axes, the kernel takes 2'" in printed
    assert _error(printed) < 0.02


def test_the_variant_for_cpus_is_plain_pytorch(package):
    pytest.importorskip("kernels")
    text = CALL.format(folder=str(package / "made"), backend="cpu", device="cpu")
    printed = _run(package, text, [])
    assert "has no kernel" in printed
    assert _error(printed) < 0.02


def test_a_gpu_of_nvidia_has_a_variant_of_its_own(judged, tmp_path):
    task, source, evaluation = judged
    evidence = evidence_of(task, evaluation, source, "cuda:0", "sm_90a")
    write_package(tmp_path / "made", task, source, evidence)
    variant = tmp_path / "made/build/torch-cuda"
    assert json.loads((variant / "metadata.json").read_text())["backend"] == {"type": "cuda"}
    facts = json.loads((variant / "facts.json").read_text())
    assert facts["architecture"] == "sm_90", "so PyTorch reports it"
    assert not (tmp_path / "made/build/torch-rocm").exists()


@pytest.mark.parametrize(
    ("reported", "expected"),
    [("NVIDIA H200", "sm_90"), ("gfx942:sramecc+:xnack-", "gfx942")],
)
def test_the_architecture_is_the_one_that_records_name(package, monkeypatch, reported, expected):
    spec = importlib.util.spec_from_file_location(
        "dispatch", package / "made/build/torch-rocm/dispatch.py"
    )
    dispatch = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(dispatch)
    properties = SimpleNamespace(gcnArchName=reported, major=9, minor=0)
    monkeypatch.setattr("torch.cuda.get_device_properties", lambda index: properties)
    assert dispatch._architecture(0) == expected


def _run(folder, text, prefix):
    script = folder / "call.py"
    script.write_text(text)
    program = [sys.executable, *prefix, *(["python"] if prefix else []), str(script)]
    done = subprocess.run(
        program, capture_output=True, text=True, env={**os.environ, "HF_HUB_OFFLINE": "1"}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _error(printed):
    (line,) = (line for line in printed.splitlines() if line.startswith("error "))
    return float(line.split()[1])


def test_the_tests_of_a_package_in_hip_pass_on_the_gpu(tmp_path):
    task = get_task("torch2hip/row_argmax")
    with Evaluator(device="sim:gfx942", seed=3) as evaluator:
        evaluation = evaluator.evaluate(task, task.kernel_source)
    evidence = evidence_of(task, evaluation, task.kernel_source, "sim:gfx942", "gfx942")
    sure = [row.model_copy(update={"low": 2.0}) for row in evidence.workloads]
    evidence = evidence.model_copy(update={"workloads": tuple(sure)})
    write_package(tmp_path / "made", task, task.kernel_source, evidence)
    shutil.copytree(tmp_path / "made/build/torch-rocm", tmp_path / "gpu_kernel_row_argmax")
    tests = str(tmp_path / "made/tests")
    command = [sys.executable, "-m", "kernel_gym", "sim", "--", sys.executable, "-m", "pytest"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [*command, "-q", "-p", "no:cacheprovider", "--rootdir", tests, tests],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert "2 passed" in done.stdout, done.stdout + done.stderr
    assert "row_argmax_kernel" in done.stderr


def test_records_that_prove_nothing_are_refused(judged):
    task, source, evaluation = judged
    failed = evaluation.model_copy(update={"outcome": Outcome.WRONG_VALUES})
    with pytest.raises(PackageError, match="outcome is wrong_values"):
        evidence_of(task, failed, source, "sim:gfx942", "gfx942")
    older = evaluation.model_copy(update={"protocol_version": "1"})
    with pytest.raises(PackageError, match="version 1 of the protocol"):
        evidence_of(task, older, source, "sim:gfx942", "gfx942")
    with pytest.raises(PackageError, match="the source was changed"):
        evidence_of(task, evaluation, source + "\n", "sim:gfx942", "gfx942")
    with pytest.raises(PackageError, match="the record speaks of torch2triton/add_rms_norm"):
        evidence_of(get_task("torch2triton/softmax"), evaluation, source, "sim:gfx942", "gfx942")


def test_a_folder_that_holds_something_stays_as_it_is(package, judged):
    task, source, evaluation = judged
    evidence = evidence_of(task, evaluation, source, "sim:gfx942", "gfx942")
    before = sorted(package.iterdir())
    with pytest.raises(PackageError, match="expected a new or an empty folder"):
        write_package(package / "made", task, source, evidence)
    writes = get_task("torch2triton/sgd_momentum_step")
    with pytest.raises(PackageError, match="writes to param"):
        write_package(package / "other", writes, source, evidence)
    assert sorted(package.iterdir()) == before


def test_a_record_against_another_kernel_does_not_say_where_pytorch_is_slower(judged):
    _, source, evaluation = judged
    task = get_task("triton2triton/add_rms_norm")
    record = evaluation.model_copy(update={"task": task.id})
    with pytest.raises(PackageError, match="give --task torch2triton/add_rms_norm"):
        evidence_of(task, record, source, "sim:gfx942", "gfx942")


def test_sizes_do_not_decide_where_pytorch_is_no_fair_baseline(write, tmp_path):
    made = write(tmp_path / "made", "torch2triton/linear_scan", low=0.5)
    facts = json.loads((made / "build/torch-rocm/facts.json").read_text())
    assert facts["workloads"] == []
    assert read_evidence(made).workloads
