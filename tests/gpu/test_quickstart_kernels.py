"""The quickstart suite's Triton kernels on a real GPU, at the shapes of real models.

The GPU device is not there yet: this loads baseline and good candidates into the test's process and
holds their values against the fp64 oracle by the judge's own tolerance.
"""

import pytest
import torch

from kernel_gym.judge.expected import compare, expect
from kernel_gym.tasks import Scale, adversarial_workloads, load_suite, train_workloads
from kernel_gym.tasks.task import kernel_path
from kernel_gym.worker import triton_module

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"),
    pytest.mark.timeout(600),
]
TASKS = [task for task in load_suite("quickstart").tasks if task.language == "triton"]


def _source(task, which, root):
    if which == "baseline":
        return kernel_path(task.problem, "triton").read_text()
    return (root / "examples" / "candidates" / task.id / "3_good.py").read_text()


def _run(function, inputs):
    on_gpu = [_to_gpu(v) if isinstance(v, torch.Tensor) else v for v in inputs.values()]
    result = function(*on_gpu)
    outputs = result if isinstance(result, tuple) else (result,)
    return tuple(o.cpu() for o in outputs)


def _to_gpu(value):
    """A copy with the same strides and the same distance from a 16-byte boundary."""
    storage = torch.empty(value.untyped_storage().nbytes() // value.itemsize, dtype=value.dtype)
    storage.set_(value.untyped_storage(), 0, storage.shape)
    moved = storage.cuda()
    return moved.as_strided(value.shape, value.stride(), value.storage_offset())


@pytest.mark.parametrize("which", ["baseline", "good"])
@pytest.mark.parametrize("task", TASKS, ids=str)
def test_values_agree_with_the_oracle(task, which, request, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    function = triton_module.load(_source(task, which, request.config.rootpath), task.entry)
    workloads = train_workloads(task.problem, Scale.FULL)[:3]
    workloads += adversarial_workloads(task.problem, Scale.FULL, "triton")
    for seed, workload in enumerate(workloads):
        expected = expect(task.problem, workload, seed)
        verdict = compare(task.problem, expected, _run(function, expected.inputs))
        assert verdict.passed, (str(workload), verdict)
