"""Tasks from modules on a GPU: admission with both baselines, and a right and a wrong kernel."""

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
from tests.imports.readers.twenty_modules import THIRTY

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"),
    pytest.mark.timeout(600),
]
CHOSEN = ("1_Relu", "2_Softmax", "25_MatMul", "26_LinearRelu")
HUGE = (
    THIRTY["1_Relu"]
    .module.replace("rows = 256", "rows = 65536")
    .replace("width = 512", "width = 65536")
)


@pytest.fixture(scope="module")
def imports(tmp_path_factory):
    folder = tmp_path_factory.mktemp("modules")
    level = folder / "checkout" / "KernelBench" / "level1"
    level.mkdir(parents=True)
    for name in CHOSEN:
        (level / f"{name}.py").write_text(THIRTY[name].module)
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


@pytest.mark.parametrize("name", CHOSEN)
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


@pytest.mark.parametrize("name", CHOSEN)
def test_a_right_kernel_passes_and_a_wrong_one_does_not(evaluator, name):
    task = get_task(f"kernelbench/level1/{name}")
    right = evaluator.evaluate(task, THIRTY[name].triton)
    assert right.outcome is Outcome.PASSED, right.message
    assert right.speedup > 0
    wrong = evaluator.evaluate(task, THIRTY[name].wrong_triton)
    assert wrong.outcome in (Outcome.WRONG_VALUES, Outcome.UNSEEN_FAILED), wrong.message
