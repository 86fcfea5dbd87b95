"""Tasks from modules on a GPU: admission with both baselines, and a right and a wrong kernel."""

from types import SimpleNamespace

import pytest
import torch

from kernel_gym.devices import resolve
from kernel_gym.evaluator import Evaluator
from kernel_gym.imports.bench.bench_process import BenchProcess
from kernel_gym.imports.bench.importing import import_suite
from kernel_gym.imports.imported import compiled_speedup
from kernel_gym.imports.manifest import ImportStatus, read_manifest
from kernel_gym.imports.readers.kernelbench import TRITON
from kernel_gym.records import Outcome
from kernel_gym.tasks import get_task
from kernel_gym.tasks.names import IMPORTS
from tests.imports.readers.ten_modules import TEN

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"),
    pytest.mark.timeout(600),
]
PRODUCT = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, b):
        return a @ b


rows, inner, cols = 64, 128, 96


def get_inputs():
    return [torch.rand(rows, inner), torch.rand(inner, cols)]


def get_init_inputs():
    return []
"""
PRODUCT_TRITON = """
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, y_ptr, inner, cols, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = at < total
    added = tl.zeros([BLOCK], tl.float64)
    for k in range(inner):
        left = tl.load(a_ptr + at // cols * inner + k, mask=keep, other=0.0)
        right = tl.load(b_ptr + k * cols + at % cols, mask=keep, other=0.0)
        added += left.to(tl.float64) * right
    tl.store(y_ptr + at, added.to(tl.float32), mask=keep)


class ModelNew(nn.Module):
    def forward(self, a, b):
        inner, cols = b.shape
        y = torch.empty(a.shape[0], cols, device=a.device)
        total = y.numel()
        kernel[(triton.cdiv(total, 128),)](a, b, y, inner, cols, total, BLOCK=128)
        return y
"""
WRONG_PRODUCT = PRODUCT_TRITON.replace("range(inner)", "range(inner // 16 * 16)")
MODULES = {name: TEN[name] for name in ("1_Relu", "2_Softmax", "8_Affine")} | {
    "11_Product": SimpleNamespace(module=PRODUCT, triton=PRODUCT_TRITON, wrong_triton=WRONG_PRODUCT)
}
HUGE = (
    TEN["1_Relu"]
    .module.replace("rows = 256", "rows = 65536")
    .replace("width = 512", "width = 65536")
)


@pytest.fixture(scope="module")
def imports(tmp_path_factory):
    folder = tmp_path_factory.mktemp("modules")
    level = folder / "checkout" / "KernelBench" / "level1"
    level.mkdir(parents=True)
    for name in MODULES:
        (level / f"{name}.py").write_text(MODULES[name].module)
    (level / "31_Huge.py").write_text(HUGE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(IMPORTS, str(folder / "imports"))
        with BenchProcess(resolve("auto")) as bench:
            list(import_suite(TRITON, folder / "checkout", [bench]))
        yield folder


@pytest.fixture(scope="module")
def evaluator(imports):
    with Evaluator("auto") as opened:
        yield opened


@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_admitted_with_both_baselines(imports, name):
    verdict = read_manifest("kernelbench").tasks[f"level1/{name}"].verdicts[resolve("auto")]
    assert verdict.status is ImportStatus.ADMITTED, verdict.reason
    assert verdict.notes[0].startswith("head-room ")
    assert verdict.compiled.reason == ""
    assert len(verdict.compiled.eager_seconds) == len(verdict.compiled.compiled_seconds) == 3
    speedup = compiled_speedup(f"kernelbench/level1/{name}", resolve("auto"))
    assert speedup == verdict.compiled.speedup > 0.2


def test_a_module_that_needs_too_much_memory_is_named(imports):
    verdict = read_manifest("kernelbench").tasks["level1/31_Huge"].verdicts[resolve("auto")]
    assert verdict.status is ImportStatus.UNSUPPORTED
    assert verdict.reason.startswith("needs more memory than there is: ")


@pytest.mark.parametrize("name", MODULES)
def test_a_right_kernel_passes_and_a_wrong_one_does_not(evaluator, name):
    task = get_task(f"kernelbench/level1/{name}")
    right = evaluator.evaluate(task, MODULES[name].triton)
    assert right.outcome is Outcome.PASSED, right.message
    assert right.speedup > 0
    wrong = evaluator.evaluate(task, MODULES[name].wrong_triton)
    assert wrong.outcome in (Outcome.WRONG_VALUES, Outcome.UNSEEN_FAILED), wrong.message
