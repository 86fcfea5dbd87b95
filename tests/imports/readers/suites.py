"""Tiny checkouts in the layouts of the suites, written for the tests."""

from pathlib import Path

SEPARATOR = "#" * 146

ADD = """
import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y * y, mask=mask)


def add(x, y):
    out = torch.empty_like(x)
    n = x.numel()
    add_kernel[(triton.cdiv(n, 256),)](x, y, out, n, BLOCK=256)
    return out
"""
ADD_TESTS = """
import torch


def test_add():
    results = {}
    for i, n in enumerate((512, 1000, 2048)):
        x = torch.randn(n, device="cuda")
        y = torch.randn(n, device="cuda")
        results[f"test_case_{i}"] = add(x, y)
    return results


result_gold = test_add()
"""
ROWS = """
import torch
import triton
import triton.language as tl


@triton.jit
def rows_kernel(x_ptr, out_ptr, stride, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + at, mask=at < cols, other=0.0)
    tl.store(out_ptr + row, tl.sum(x * x))


def rows(x):
    out = torch.empty(x.shape[0], device=x.device)
    block = triton.next_power_of_2(x.shape[1])
    rows_kernel[(x.shape[0],)](x, out, x.stride(0), x.shape[1], BLOCK=block)
    return out
"""
ROWS_TESTS = """
import torch

result_gold = [rows(torch.randn(n, n + 5, device="cuda")) for n in (16, 40)]
"""
SIGNS_TESTS = """
import torch

signs = ([-3.0, -1.0, -0.5, -2.0], [0.0, 0.0, 0.0, 0.0], [-3.0, -1.0, 0.5, 2.0])
result_gold = [relu(torch.tensor(values, device="cuda")) for values in signs]
"""
RELU = """
import torch
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, tl.maximum(x, 0.0), mask=at < n)


def relu(x):
    out = torch.empty_like(x)
    relu_kernel[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out
"""
PEAK = """
import torch
import triton
import triton.language as tl


@triton.jit
def divided_kernel(x_ptr, peak_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, tl.exp(x / tl.load(peak_ptr)), mask=at < n)


def peak(x):
    out = torch.empty_like(x)
    most = x.abs().amax()
    divided_kernel[(triton.cdiv(x.numel(), 64),)](x, most, out, x.numel(), BLOCK=64)
    return out
"""
PEAK_TESTS = """
import torch

result_gold = [peak(torch.randn(n, device="cuda")) for n in (512, 1000)]
"""
DRAWS = (
    RELU
    + """

def drawn_relu(n):
    return relu(torch.randn(n, device="cuda"))
"""
)
DRAWS_TESTS = """
result_gold = [drawn_relu(n) for n in (64, 100)]
"""
VACUOUS_TESTS = """
import torch

z = torch.zeros(64, device="cuda")
result_gold = {"a": add(z, z).shape}
"""
PICKS = """
import torch
import triton
import triton.language as tl


@triton.jit
def shifted(x, by):
    return x + by


@triton.jit
def picks_kernel(x_ptr, picked_ptr, by_ptr, out_ptr):
    row = tl.program_id(0)
    tl.store(out_ptr + row, shifted(tl.load(x_ptr + tl.load(picked_ptr + row)), tl.load(by_ptr)))


@torch.inference_mode()
def picks(x, picked):
    by = torch.tensor([1], device=x.device)
    out = torch.empty(len(picked), dtype=x.dtype, device=x.device)
    picks_kernel[(len(picked),)](x, picked, by, out)
    return out
"""
PICKS_TESTS = """
import torch

for n in (4, 8):
    torch.manual_seed(n)
    ends = torch.arange(n + 1, device="cuda") * 3  # ordered, so that it is kept
    picks(ends, torch.randint(0, n, (n,), device="cuda"))
result_gold = shifted
"""
LENGTHS_TESTS = """
import torch

for n in (4, 8):
    picks(torch.arange(n, device="cuda") * 2, torch.arange(n, device="cuda"))
"""
TANH = """
import torch


def gated(x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
    return torch.tanh(x) * scale
"""
TANH_TESTS = """
import torch
from data_utils import drawn


def test_gated():
    for dims in range(1, 6):  # small whole numbers, which stay as they are
        gated(torch.arange(2**dims, device="cuda").flip(0).reshape([2] * dims))
    return {str(n): gated(drawn(n), scale=0.5) for n in (64, 300)}


test_results = test_gated()
"""
W8A8 = """
import torch


def quantised(x: torch.Tensor, dim: int):
    scale = x.abs().amax(dim, keepdim=True) / 127
    return torch.round(x / scale), scale


def matmul_w8a8(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    a, scale_a = quantised(x, 1)
    b, scale_b = quantised(w, 0)
    return (a @ b) * scale_a * scale_b
"""
W8A8_TESTS = """
import torch


def test_matmul_w8a8():
    sizes = ((16, 32, 8), (24, 64, 16))
    return [
        matmul_w8a8(torch.randn(m, k, device="cuda"), torch.randn(k, n, device="cuda"))
        for m, k, n in sizes
    ]


test_results = test_matmul_w8a8()
"""
W8A8_KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def product_kernel(x_ptr, w_ptr, out_ptr, k, n, xm, xk, wk, wn, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.program_id(1)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * xm + at * xk, mask=at < k, other=0.0)
    w = tl.load(w_ptr + at * wk + column * wn, mask=at < k, other=0.0)
    a = tl.max(tl.abs(x), 0) / 127
    b = tl.max(tl.abs(w), 0) / 127
    x, w = tl.floor(x / a + 0.5), tl.floor(w / b + 0.5)
    tl.store(out_ptr + row * n + column, tl.sum(x * w, 0) * a * b)


def matmul_w8a8(x, w):
    (m, k), n = x.shape, w.shape[1]
    out = torch.empty(m, n, device=x.device)
    strides = (x.stride(0), x.stride(1), w.stride(0), w.stride(1))
    product_kernel[(m, n)](x, w, out, k, n, *strides, BLOCK=triton.next_power_of_2(k))
    return out
"""
PYTEST_TESTS = """
import pytest
import torch
from performance_utils_pytest import PytestBenchmarker

result_gold = {}


@pytest.mark.parametrize("n", [256, 512])
def test_add(n):
    x, y = (torch.randn(n, device="cuda") for _ in range(2))
    out = torch.empty_like(x)
    add_kernel[(n // 256,)](x, y, out, n, BLOCK=256)
    assert torch.allclose(out, x + y * y)


def test_performance():
    raise RuntimeError("timing is not run")
"""
RUNNER = """
import importlib.util
import os
import sys

import torch

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


# >>> AKA-GENERATED: shared benchmark helpers >>>
def _benchmark_cuda_graph_or_events(*args, **kwargs):
    raise RuntimeError("not filled in")
# <<< AKA-GENERATED <<<


def load_module():
    spec = importlib.util.spec_from_file_location("kernel", os.path.join(HERE, "source", "add.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    assert sys.argv[1:] in (["correctness"], ["compile"])
    mod = load_module()
    if sys.argv[-1] == "compile":
        sys.exit(0)
    for n in (512, 1024):
        x, y = (torch.randn(n, device="cuda") for _ in range(2))
        if not torch.allclose(mod.add(x, y), x + y * y):
            sys.exit(1)
    sys.exit(0)
"""

HELPERS = """
'''Timing helpers of the suite.'''
import torch


def _measure_cuda_event_fallback(fn, repetition):
    raise RuntimeError("nothing is timed here")
"""


SCALE = """
import torch
import torch.nn as nn


class Helper(nn.Module):
    pass


class Scale(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))

    def forward(self, x):
        return x * self.weight + torch.sigmoid(x)


def get_inputs():
    for rows in (8, 64, 128):
        yield [torch.randn(rows, 256)]


def get_init_inputs():
    return [[], {"hidden_size": 256}]
"""
SCALE_HIP = """
#include <hip/hip_runtime.h>
#include <cstdint>

__global__ void scale(const float* x, const float* weight, float* out, int64_t n, int64_t d1) {
  int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] * weight[i % d1] + 1.0f / (1.0f + expf(-x[i]));
}

extern "C" hipError_t model_new(const float* x, const float* weight, float* out, int64_t d1,
                                int64_t d0, hipStream_t stream) {
  int64_t n = d0 * d1;
  scale<<<(n + 255) / 256, 256, 0, stream>>>(x, weight, out, n, d1);
  return hipGetLastError();
}
"""


SPECTRUM = """
import torch


def spectrum(x: torch.Tensor) -> torch.Tensor:
    return torch.fft.fftn(x)
"""
SPECTRUM_TESTS = """
import torch

test_results = [spectrum(torch.randn(n, 8, device="cuda")) for n in (4, 12)]
"""


def halves(*parts):
    """A file with an implementation and its tests."""
    return f"\n{SEPARATOR}\n".join(parts)


def write(folder: Path, files):
    """Writes a checkout."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def tritonbench(folder: Path):
    """TritonBench: one good task, and bad ones of each kind."""
    g = "data/TritonBench_G_v1"
    add = '{"file": "add.py", "comp_instru": "Add a square.", "difficulty": "1"}'
    listed = f'[{add}, {{"file": "gone.py"}}]'
    files = {
        f"{g}/add.py": halves(ADD, ADD_TESTS),
        f"{g}/blind.py": halves(ADD, VACUOUS_TESTS),
        f"{g}/broken.py": halves("def f(:", "f()"),
        f"{g}/itself.py": halves(ADD, "def add(x, y):\n    return x\n" + ADD_TESTS),
        f"{g}/pointer.py": "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
        f"{g}/rows.py": halves(ROWS, ROWS_TESTS),
        f"{g}/raises.py": halves(ADD, "raise ValueError('no GPU here')\nadd"),
        f"{g}/whole.py": ADD,
        f"{g}/picks.py": halves(PICKS, PICKS_TESTS),
        f"{g}/lengths.py": halves(PICKS, LENGTHS_TESTS),
        f"{g}/signs.py": halves(RELU, SIGNS_TESTS),
        f"{g}/draws.py": halves(DRAWS, DRAWS_TESTS),
        f"{g}/peak.py": halves(PEAK, PEAK_TESTS),
        "data/TritonBench_G_v1.json": listed,
        "EVAL/eval_G/readme": "",
    }
    return write(folder, files)


def kernelbenchx(folder: Path):
    """KernelBenchX: one task of its list, and a file that is not in the list."""
    gated = '{"name": "gated", "file": "Activation/gated.py", "description": "A gate."}'
    product = '{"name": "matmul_w8a8", "file": "Quantization/matmul_w8a8.py", "description": "-"}'
    waves = '{"name": "spectrum", "file": "Math/spectrum.py", "description": "Waves."}'
    listed = f"[{gated}, {product}, {waves}]"
    drawn = 'import torch\ndrawn = lambda n: torch.randn(n, 8, device="cuda")\n'
    files = {
        "data/kernelbenchx/Activation/gated.py": halves(TANH, TANH_TESTS),
        "data/kernelbenchx/Activation/extra.py": halves(TANH, TANH_TESTS),
        "data/kernelbenchx/Quantization/matmul_w8a8.py": halves(W8A8, W8A8_TESTS),
        "data/kernelbenchx/Math/spectrum.py": halves(SPECTRUM, SPECTRUM_TESTS),
        "data/kernelbenchx_v1.json": listed,
        "utils/data_utils.py": drawn,
    }
    return write(folder, files)


def arena(folder: Path):
    """AgentKernelArena with tasks of both contracts and of a category that is not supported."""
    base = "tasks/triton2triton"
    first = (
        "source_file_path: [source/add.py]\n"
        "correctness_command: [python3 scripts/task_runner.py correctness]\n"
        "prompt: {instructions: Make add faster.}\n"
    )
    second = (
        "schema_version: 2\n"
        "candidate: {editable: [source/add.py]}\n"
        "evaluation: {runner: [python3, scripts/task_runner.py]}\n"
    )
    pytest_task = "correctness_command: ['pytest -vv test_add.py -k \"not performance\"']\n"
    runner = RUNNER.replace("sys.argv[1:]", "sys.argv[2:]")
    files = {
        f"{base}/vllm/one/config.yaml": first,
        f"{base}/vllm/one/source/add.py": ADD,
        f"{base}/vllm/one/scripts/task_runner.py": RUNNER,
        f"{base}/vllm/two/config.yaml": second,
        f"{base}/vllm/two/source/add.py": ADD,
        f"{base}/vllm/two/scripts/task_runner.py": runner,
        f"{base}/rocmbench/easy/test_add/config.yaml": pytest_task,
        f"{base}/rocmbench/easy/test_add/test_add.py": halves("import os\n" + ADD, PYTEST_TESTS),
        f"{base}/vllm/bad/config.yaml": "a: [",
        f"{base}/vllm/gone/config.yaml": first,
        "tasks/hip2hip/gpumode/SiLU/config.yaml": "task_type: hip2hip\n",
        "tasks/torch2hip/gpumode/Scale/config.yaml": "task_type: torch2hip\n",
        "tasks/torch2hip/gpumode/Scale/pytorch_code_module/py_1_Scale.py": SCALE,
        "src/main.py": "",
        "src/tools/perf/vllm_cuda_graph_block.py": HELPERS,
    }
    return write(folder, files)
