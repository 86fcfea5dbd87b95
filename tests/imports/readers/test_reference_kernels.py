"""A tiny checkout in the layout of GPU MODE's problems."""

import pytest

from kernel_gym.evaluator import Evaluator
from kernel_gym.imports.bench.import_bench import ImportBench
from kernel_gym.imports.bench.importing import import_suite
from kernel_gym.imports.manifest import ImportStatus
from kernel_gym.imports.readers.base import FoundTask, Unsupported
from kernel_gym.imports.readers.reference_kernels import TRITON
from kernel_gym.records import Outcome
from kernel_gym.tasks import get_task
from kernel_gym.tasks.names import IMPORTS

TASK = """
files:
  - {"name": "submission.py", "source": "@SUBMISSION@"}
  - {"name": "utils.py", "source": "../utils.py"}
  - {"name": "reference.py", "source": "reference.py"}
  - {"name": "eval.py", "source": "../eval.py"}
lang: "py"
description: Scale rows.
tests:
  - {"rows": 32, "k": 64, "seed": 4}
benchmarks:
  - {"rows": 64, "k": 128, "seed": 5}
"""
REFERENCE = """
import torch
from utils import FACTOR


def generate_input(rows: int, k: int, seed: int):
    gen = torch.Generator(device="cuda")
    gen.manual_seed(seed)
    x = torch.randn(rows, k, device="cuda", generator=gen).contiguous()
    shift = (torch.rand(1, device="cuda", generator=gen) * 2).item()
    return x + shift, torch.empty(rows, k, device="cuda").contiguous()


def ref_kernel(data):
    x, output = data
    output[...] = x * FACTOR
    return output
"""
KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def scale(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 3.0, mask=at < n)


def custom_kernel(data):
    x, output = data
    n = x.numel()
    scale[(triton.cdiv(n, 256),)](x, output, n, BLOCK=256)
    return output
"""


@pytest.fixture
def checkout(tmp_path):
    folder = tmp_path / "checkout" / "problems" / "tiny"
    (folder / "scale_py").mkdir(parents=True)
    (folder / "scale_py" / "task.yml").write_text(TASK)
    (folder / "scale_py" / "reference.py").write_text(REFERENCE)
    (folder / "utils.py").write_text("FACTOR = 3.0\n")
    (tmp_path / "checkout" / "LICENSE").write_text("MIT License\n")
    return tmp_path / "checkout"


def only(checkout):
    (entry,) = TRITON.entries(checkout)
    return entry


def test_a_problem_is_listed_with_its_modules_and_no_evaluator(checkout):
    assert TRITON.detect(checkout)
    entry = only(checkout)
    assert isinstance(entry, FoundTask)
    assert entry.name == "tiny/scale_py"
    assert [file.rpartition("/")[2] for file in entry.files] == [
        "task.yml",
        "reference.py",
        "utils.py",
    ]
    assert entry.details["specs"] == [{"rows": 32, "k": 64}, {"rows": 64, "k": 128}]


def test_another_licence_is_refused_by_name(checkout):
    (checkout / "LICENSE").write_text("Reciprocity License v1.0\n")
    entry = only(checkout)
    assert isinstance(entry, Unsupported)
    assert "found 'Reciprocity License v1.0', expected MIT" in entry.reason


@pytest.mark.parametrize(
    ("file", "before", "after", "found"),
    [
        ("task.yml", '"k": 64', '"lanes": 64', "test 1: found ['lanes', 'rows']"),
        ("task.yml", "tests:", "tests: [", "found no YAML"),
        ("task.yml", "../utils.py", "../../../../utils.py", "leads out of the checkout"),
        ("task.yml", '"reference.py", "source"', '"other.py", "source"', "found no reference.py"),
        ("task.yml", "lang:", "multi_gpu: true\nlang:", "several GPUs"),
        ("reference.py", "def ref_kernel", "def kernel", "found no function 'ref_kernel'"),
        ("reference.py", "def ref_kernel(", "def ref_kernel(:", "does not parse"),
    ],
)
def test_a_problem_that_cannot_be_read_says_why(checkout, file, before, after, found):
    path = checkout / "problems" / "tiny" / "scale_py" / file
    path.write_text(path.read_text().replace(before, after))
    entry = only(checkout)
    assert isinstance(entry, Unsupported)
    assert found in entry.reason


@pytest.mark.sweep
def test_a_problem_is_imported_and_judges_submissions(checkout, tmp_path, monkeypatch):
    monkeypatch.setenv(IMPORTS, str(tmp_path / "imports"))
    with ImportBench("sim:gfx942") as bench:
        (step,) = import_suite(TRITON, checkout, [bench])
    (verdict,) = step.entry.verdicts.values()
    assert verdict.status is ImportStatus.ADMITTED, verdict.reason
    task = get_task("reference-kernels/tiny/scale_py")
    assert [argument.name for argument in task.problem.args] == ["data_0"]
    with Evaluator("sim:gfx942", seed=1) as evaluator:
        right = evaluator.evaluate(task, KERNEL)
        wrong = evaluator.evaluate(task, KERNEL.replace("3.0", "3.1"))
    assert right.outcome is Outcome.PASSED, right.message
    assert right.speedup > 0
    assert wrong.outcome is Outcome.WRONG_VALUES
