"""A package with the kernel of its gradient calls that kernel, and verifies both."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import zipfile

import pytest
import torch
from typer.testing import CliRunner

from kernel_gym.cli import app
from kernel_gym.packages.evidence import PackageError, read_evidence
from kernel_gym.packages.verify import changed_files, packaged_kernel, verify
from kernel_gym.packages.write import BACKWARD, write_package
from kernel_gym.tasks import Scale, get_problem, get_task, make_inputs, train_workloads

GPU = """
import sys, torch
sys.path.insert(0, sys.argv[1])
import gpu_kernel_rms_norm as package
x, weight = torch.randn(64, 256).half().cuda(), torch.randn(256).half().cuda()
x, weight = x.requires_grad_(), weight.requires_grad_()
grad = torch.randn(64, 256).half().cuda()
package.rms_norm(x, weight, 1e-5).backward(grad)
call = (grad, x.detach(), weight.detach(), 1e-5)
print("reason", repr(package.backward.reason(*call)))
right = package.backward.reference(*call)
print("same", torch.allclose(x.grad, right[0], atol=1e-2), weight.grad.dtype)
"""


@pytest.fixture
def both(write, tmp_path):
    """Writes the package of a problem with the kernel of its gradient, and unpacks the wheel."""

    def make(problem):
        inner, evidence = packaged_kernel(
            write(tmp_path / "inner", f"torch2triton/{BACKWARD[problem]}")
        )
        alone = write(tmp_path / "alone", f"torch2triton/{problem}")
        task = get_task(f"torch2triton/{problem}")
        whole = read_evidence(alone).model_copy(update={"backward": evidence, "files": {}})
        write_package(tmp_path / "made", task, task.kernel_source, whole, inner)
        (wheel,) = (tmp_path / "made/dist").glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(tmp_path / "installed")
        return tmp_path / "made"

    return make


@pytest.mark.parametrize("problem", BACKWARD)
def test_the_gradient_is_that_of_the_backward_operator(both, tmp_path, monkeypatch, problem):
    both(problem)
    monkeypatch.syspath_prepend(str(tmp_path / "installed"))
    package = importlib.import_module(f"gpu_kernel_{problem}")
    load = min(
        train_workloads(get_problem(problem), Scale.SIM),
        key=lambda one: get_problem(problem).elements(one.dims),
    )
    arguments = [*make_inputs(get_problem(problem), load, 0).values()]
    operator, calls = getattr(package.backward, BACKWARD[problem]), []
    monkeypatch.setattr(
        package.backward,
        BACKWARD[problem],
        lambda *values: calls.append(values) or operator(*values),
    )
    wide = [one.double() if _is_real(one) else one for one in arguments]
    right = gradients(lambda *values: package.reference(*values)[0], wide)
    ours = gradients(getattr(package, problem), arguments)
    assert len(calls) == 1
    if problem == "softmax":
        leaf = arguments[0].requires_grad_()
        torch.library.opcheck(torch.ops.gpu_kernel_softmax.softmax.default, (leaf,))
    for one, other in zip(ours, right, strict=True):
        assert one.dtype == torch.float16
        torch.testing.assert_close(one.double(), other, rtol=2e-2, atol=2e-2)


def gradients(function, arguments):
    """Returns the gradients of all floating-point arguments for a drawn one of the output."""
    leaves = [
        one.clone().requires_grad_() if _is_real(one) else one  # each call has its own
        for one in arguments
    ]
    out = function(*leaves)
    drawn = torch.randn(out.shape, generator=torch.Generator().manual_seed(1)).half()
    out.backward(drawn.to(out.dtype))
    return [one.grad for one in leaves if _is_real(one)]


def _is_real(value):
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def test_both_kernels_run_on_the_gpu(both, tmp_path):
    both("rms_norm")
    command = [sys.executable, "-m", "kernel_gym", "sim", "--", sys.executable, "-c", GPU]
    done = subprocess.run(
        [*command, str(tmp_path / "installed")], capture_output=True, text=True, env=os.environ
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "reason ''" in done.stdout
    assert "same True torch.float16" in done.stdout


def test_the_kernel_of_another_operation_is_refused(write, tmp_path):
    inner, evidence = packaged_kernel(write(tmp_path / "inner", "torch2triton/swiglu_backward"))
    task = get_task("torch2triton/rms_norm")
    alone = read_evidence(write(tmp_path / "alone", task.id))
    whole = alone.model_copy(update={"backward": evidence})
    with pytest.raises(PackageError, match="takes rms_norm_backward, found swiglu_backward"):
        write_package(tmp_path / "made", task, task.kernel_source, whole, inner)
    right, evidence = packaged_kernel(write(tmp_path / "right", "torch2triton/rms_norm_backward"))
    whole = alone.model_copy(update={"backward": evidence})
    with pytest.raises(PackageError, match="the source is not the one"):
        write_package(tmp_path / "made", task, task.kernel_source, whole, right + "\n")
    assert not (tmp_path / "made").exists()


def test_a_changed_kernel_of_the_gradient_is_refused(both):
    made = both("softmax")
    evidence = read_evidence(made)
    assert changed_files(made, evidence) == []
    path = made / "build/torch-rocm/backward/candidate.py"
    path.write_text(path.read_text() + "\n")
    with pytest.raises(PackageError, match=r"backward/candidate\.py has another content"):
        verify(made)


@pytest.mark.sweep
def test_the_command_takes_a_package_for_the_gradient_and_verify_judges_both(tmp_path):
    def package(problem, *more):
        task = get_task(f"torch2triton/{problem}")
        source = tmp_path / f"{problem}.py"
        source.write_text(task.kernel_source)
        arguments = ["package", str(source), "--task", task.id, "--out", str(tmp_path / problem)]
        done = CliRunner().invoke(app, [*arguments, "--device", "sim:gfx942", "--seed", "3", *more])
        assert done.exit_code == 0, done.output
        return tmp_path / problem

    inner = package("softmax_backward")
    made = package("softmax", "--backward", str(inner))
    verification = verify(made, seed=3)
    assert verification.differences == ()
    evidence = read_evidence(made)
    faster = evidence.backward.model_copy(update={"speedup_low": 9.0, "speedup": 9.0})
    changed = evidence.model_copy(update={"backward": faster})
    (made / "evidence.json").write_text(changed.model_dump_json())
    differences = verify(made, seed=3).differences
    assert any("torch2triton/softmax_backward: the speed-up is" in one for one in differences)
