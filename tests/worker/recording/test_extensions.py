"""PyTorch extensions as candidates: verdicts as in plain HIP, and attacks are refused."""

from __future__ import annotations

from functools import partial

import pytest

from kernel_gym.devices.languages import lacking
from kernel_gym.devices.sim.toolchain import HipToolchain, hip_toolchain
from kernel_gym.evaluator import Evaluator
from kernel_gym.judge.screen import screen
from kernel_gym.records import Outcome
from kernel_gym.tasks import get_task
from kernel_gym.tasks.extension import is_extension, is_extension_file
from kernel_gym.worker.recording.extensions import inline_source

TASK = get_task("hip2hip/transpose")
MODULE = """
import torch
from torch.utils.cpp_extension import load_inline

device = r'''
KERNEL
HOST
'''
module = load_inline(
    name="transposing",
    cpp_sources="torch::Tensor transpose(torch::Tensor x);",
    cuda_sources=device,
    functions=["transpose"],
    extra_cuda_cflags=["-O3"],
)

def transpose(x):
    return module.transpose(x)
"""
LAUNCH = """
torch::Tensor transpose(torch::Tensor x) {
  TORCH_CHECK(x.is_cuda() && x.dim() == 2, "expected a matrix on the GPU");
  x = x.contiguous();
  auto out = torch::empty({x.size(1), x.size(0)}, x.options());
  transpose_kernel<<<x.size(0), kThreads>>>(
      x.data_ptr<float>(), out.data_ptr<float>(), x.size(0), x.size(1));
  return out;
}
"""
ON_THE_HOST = """
torch::Tensor transpose(torch::Tensor x) {
  auto out = torch::empty({x.size(1), x.size(0)}, x.options());
  const float* from = x.data_ptr<float>();
  float* to = out.data_ptr<float>();
  for (int64_t i = 0; i < x.size(0); ++i)
    for (int64_t j = 0; j < x.size(1); ++j) to[j * x.size(0) + i] = from[i * x.size(1) + j];
  return out;
}
"""
BY_OPERATORS = """
torch::Tensor transpose(torch::Tensor x) { return (x * 1.0).t().contiguous(); }
"""
OTHER_LAUNCHES = LAUNCH.replace(
    "  transpose_kernel<<<x.size(0),",
    "  static int calls = 0;\n  transpose_kernel<<<calls++ < 9 ? x.size(0) : 1,",
)


def module(host: str) -> str:
    """Returns a candidate with the start kernel of the task and other host code."""
    source = TASK.baseline_source
    kernel = source[source.index("constexpr") : source.index('extern "C"')]
    return MODULE.replace("KERNEL", kernel).replace("HOST", host)


FILE = """
#include <torch/extension.h>
#include <hip/hip_runtime.h>
#include <c10/hip/HIPStream.h>
KERNEL
HOST
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("FUNCTION", &transpose, "transposes");
}
"""


def file(host: str, function: str = "forward") -> str:
    """Returns a candidate like `module`, as a file for `cpp_extension.load`."""
    source = TASK.baseline_source
    kernel = source[source.index("constexpr") : source.index('extern "C"')]
    text = FILE.replace("KERNEL", kernel).replace("HOST", host)
    return text.replace("FUNCTION", function)


case = partial(pytest.param, marks=pytest.mark.sweep)


@pytest.fixture(scope="module")
def evaluator():
    chain = hip_toolchain()
    if not isinstance(chain, HipToolchain):
        pytest.skip(chain.problem)
    with Evaluator(device="sim:gfx942", seed=0) as evaluator:
        yield evaluator


@pytest.mark.slow
@pytest.mark.timeout(1800)  # PyTorch's headers are compiled once on a machine
def test_an_extension_is_paid_as_its_kernel_in_plain_hip(evaluator):
    plain = evaluator.evaluate(TASK, TASK.baseline_source)
    result = evaluator.evaluate(TASK, module(LAUNCH))
    assert (result.outcome, result.message) == (Outcome.PASSED, "")
    assert result.speedup == pytest.approx(plain.speedup, rel=0.02)
    assert result.unseen_speedup == pytest.approx(plain.unseen_speedup, rel=0.02)
    assert all(workload.launches == 1 for workload in result.workloads)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("host", "outcome", "text"),
    [
        case(LAUNCH.replace("x.size(0), kThreads", "x.size(0) - 1, kThreads"), "wrong_values", ""),
        case(ON_THE_HOST, "runtime_error", "SIGSEGV"),
        case(BY_OPERATORS, "runtime_error", "mul"),
        case(OTHER_LAUNCHES, "runtime_error", "two recordings of one call differ"),
        (LAUNCH.replace("TORCH_CHECK", "TORCH_CHUCK"), "compile_error", "TORCH_CHUCK"),
        case(LAUNCH.replace("x.is_cuda()", "!x.is_cuda()"), "runtime_error", "expected a matrix"),
    ],
    ids=["a row less", "on the host", "by operators", "other launches", "no build", "a check"],
)
def test_an_extension_that_is_wrong_or_cheats_is_refused(evaluator, host, outcome, text):
    result = evaluator.evaluate(TASK, module(host))
    assert result.outcome == Outcome(outcome), result.message
    assert text in result.message
    assert "candidate.hip" not in result.message + result.detail
    if outcome == "compile_error":
        assert "load_inline.hip:" in result.message + result.detail


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_file_in_hip_with_bindings_is_paid_as_its_kernel_in_plain_hip(evaluator):
    plain = evaluator.evaluate(TASK, TASK.baseline_source)
    result = evaluator.evaluate(TASK, file(LAUNCH))
    assert (result.outcome, result.message) == (Outcome.PASSED, "")
    assert result.speedup == pytest.approx(plain.speedup, rel=0.02)
    assert all(workload.launches == 1 for workload in result.workloads)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("source", "outcome", "text"),
    [
        case(file(LAUNCH, "transpose"), "passed", ""),
        case(file(ON_THE_HOST), "runtime_error", "SIGSEGV"),
        case(file(BY_OPERATORS), "runtime_error", "mul"),
        case(file(OTHER_LAUNCHES), "runtime_error", "two recordings of one call differ"),
        (
            file(LAUNCH, "other"),
            "compile_error",
            "no function 'transpose' or 'forward'; it binds other",
        ),
        case(file(LAUNCH.replace("TORCH_CHECK", "TORCH_CHUCK")), "compile_error", "candidate.hip:"),
        (file(LAUNCH.replace("x = x", 'system("true"); x = x')), "screened", "starts a process"),
    ],
    ids=[
        "its own name",
        "on the host",
        "by operators",
        "other launches",
        "unbound",
        "no build",
        "shell",
    ],
)
def test_a_file_in_hip_with_bindings_is_judged_as_a_module(evaluator, source, outcome, text):
    result = evaluator.evaluate(TASK, source)
    assert result.outcome == Outcome(outcome), result.message
    assert text in result.message + result.detail


def test_a_file_with_bindings_is_told_from_a_launcher_and_a_module():
    assert is_extension_file(file(LAUNCH), "hip")
    assert not is_extension_file(file(LAUNCH), "triton")
    assert not is_extension_file(TASK.baseline_source, "hip")
    with_bindings = module(LAUNCH).replace("HOST", "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}")
    assert not is_extension_file(with_bindings, "hip")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (("cuda_sources=device", "cuda_sources=''"), "cuda_sources is empty"),
        (('"transposing"', '"no name"'), "the name is 'no name', expected an identifier"),
        (("import load_inline", "import load as load_inline"), "use load_inline with the sources"),
    ],
)
def test_a_module_that_asks_in_another_way_is_told_so(evaluator, change, text):
    source = module(LAUNCH)
    assert change[0] in source
    result = evaluator.evaluate(TASK, source.replace(*change))
    assert result.outcome in (Outcome.COMPILE_ERROR, Outcome.RUNTIME_ERROR)
    assert text in result.message


def test_an_extension_is_built_when_the_module_is_imported(evaluator):
    late = module(LAUNCH).replace("module = load_inline(", "module = lambda: load_inline(")
    result = evaluator.evaluate(TASK, late.replace("module.transpose", "module().transpose"))
    assert result.outcome is Outcome.COMPILE_ERROR
    assert "call it at the top of the module" in result.message


@pytest.mark.parametrize(
    ("mode", "language"), [("triton2triton", "Triton"), ("torch2tilelang", "TileLang")]
)
def test_a_task_in_another_language_takes_no_extension(evaluator, mode, language):
    task = get_task(f"{mode}/softmax")
    if reason := lacking(task.extra, evaluator.device.description):
        pytest.skip(reason)
    last = f"import {task.extra}\n" if task.extra else ""
    source = module(LAUNCH).replace("def transpose(", "def softmax(") + last
    result = evaluator.evaluate(task, source)
    assert result.outcome is Outcome.COMPILE_ERROR
    assert f"found a task in {language}, expected one in HIP" in result.message


def test_texts_of_an_extension_are_screened_as_sources_in_hip():
    assert screen(module(LAUNCH), "hip").rejection == ""
    rejection = screen(module(LAUNCH.replace("x = x.", 'system("ls"); x = x.')), "hip").rejection
    assert rejection.startswith("in a text of the extension, line")
    assert "starts a process" in rejection
    assert "import of 'ctypes'" in screen("import ctypes\n" + module(LAUNCH), "hip").rejection


def test_a_source_in_hip_is_no_extension():
    assert is_extension(module(LAUNCH), "hip")
    assert not is_extension(module(LAUNCH), "triton")
    assert not is_extension(TASK.baseline_source + "// load_inline", "hip")


def test_both_sides_and_the_bindings_become_one_source():
    source = inline_source("name", ["int f();"], "int f() { return N; }", {"f": "it"}, ["-DN=3"])
    assert source.splitlines() == [
        "#define TORCH_EXTENSION_NAME name",
        "#define N 3",
        "int f();",
        "int f() { return N; }",
        "",
        "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {",
        '  m.def("f", &f);',
        "}",
    ]
