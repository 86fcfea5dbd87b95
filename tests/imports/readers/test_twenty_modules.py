"""Right kernels for twenty more problems in KernelBench's layout pass, and wrong ones do not."""

import pytest

from kernel_gym.evaluator import Evaluator
from kernel_gym.imports.bench.import_bench import ImportBench
from kernel_gym.imports.bench.importing import import_suite
from kernel_gym.imports.manifest import ImportStatus, read_manifest
from kernel_gym.imports.readers.kernelbench import TRITON
from kernel_gym.records import Outcome
from kernel_gym.tasks import get_task
from kernel_gym.tasks.names import IMPORTS
from tests.imports.readers.twenty_modules import TWENTY

DEVICE = "sim:gfx942"
pytestmark = [pytest.mark.sweep, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def imports(tmp_path_factory):
    folder = tmp_path_factory.mktemp("twenty")
    level = folder / "checkout" / "KernelBench" / "level1"
    level.mkdir(parents=True)
    for name, row in TWENTY.items():
        (level / f"{name}.py").write_text(row.module)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(IMPORTS, str(folder / "imports"))
        with ImportBench(DEVICE) as bench:
            list(import_suite(TRITON, folder / "checkout", [bench]))
        yield folder


@pytest.fixture(scope="module")
def evaluator(imports):
    with Evaluator(DEVICE, seed=5) as opened:
        yield opened


@pytest.mark.parametrize("name", TWENTY)
def test_the_problem_is_admitted(imports, name):
    verdict = read_manifest("kernelbench").tasks[f"level1/{name}"].verdicts[DEVICE]
    assert verdict.status is ImportStatus.ADMITTED, verdict.reason


@pytest.mark.parametrize("name", TWENTY)
def test_a_right_kernel_is_paid(evaluator, name):
    evaluation = evaluator.evaluate(get_task(f"kernelbench/level1/{name}"), TWENTY[name].triton)
    assert evaluation.outcome is Outcome.PASSED, evaluation.message
    assert evaluation.speedup > 0


@pytest.mark.parametrize("name", TWENTY)
def test_a_wrong_kernel_is_refused_for_its_values(evaluator, name):
    task = get_task(f"kernelbench/level1/{name}")
    evaluation = evaluator.evaluate(task, TWENTY[name].wrong_triton)
    wrong = (Outcome.WRONG_VALUES, Outcome.UNSEEN_FAILED)
    assert evaluation.outcome in wrong, evaluation.message
    assert evaluation.speedup is None
