"""A tiny checkout in KernelBench's layout: reading, tracing, and candidates with ModelNew."""

import pytest

from kernel_gym.evaluator import Evaluator
from kernel_gym.imports.bench.import_bench import ImportBench
from kernel_gym.imports.bench.importing import import_suite
from kernel_gym.imports.manifest import ImportStatus
from kernel_gym.imports.predictions import (
    PredictionError,
    kernelbench_key,
    prediction_for,
    read_predictions,
)
from kernel_gym.imports.readers.base import FoundTask, Unsupported
from kernel_gym.imports.readers.kernelbench import TRITON
from kernel_gym.records import Outcome
from kernel_gym.tasks import get_task
from kernel_gym.tasks.names import IMPORTS

SCALE = '''
import torch
import torch.nn as nn


class Model(nn.Module):
    """Weighs each channel and adds a constant."""

    def __init__(self, channels, shift):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.shift = shift

    def forward(self, x):
        return x * self.weight + self.shift


batch = 64
channels = 2 * 256


def get_inputs():
    return [torch.rand(batch, channels)]


def get_init_inputs():
    return [channels, 0.5]
'''
PRETRAINED = "from transformers import AutoConfig\nconfig = AutoConfig.from_pretrained('gpt2')\n"
RIGHT = """
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def scale(x, w, y, shift, n, channels, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n) * tl.load(w + at % channels, mask=at < n) + shift
    tl.store(y + at, value, mask=at < n)


class ModelNew(nn.Module):
    def __init__(self, channels, shift):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.shift = shift

    def forward(self, x):
        y = torch.empty_like(x)
        n = x.numel()
        scale[(triton.cdiv(n, 256),)](x, self.weight, y, self.shift, n, x.shape[1], BLOCK=256)
        return y
"""


@pytest.fixture
def checkout(tmp_path):
    for level, name, text in (
        (1, "10_Later.py", SCALE),
        (1, "2_Scale.py", SCALE),
        (4, "1_gpt2.py", PRETRAINED),
    ):
        folder = tmp_path / "checkout" / "KernelBench" / f"level{level}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return tmp_path / "checkout"


def test_tasks_are_listed_by_level_and_number(checkout):
    assert TRITON.detect(checkout)
    assert not TRITON.detect(checkout / "KernelBench")
    first, second, last = TRITON.entries(checkout)
    assert (first.name, second.name) == ("level1/2_Scale", "level1/10_Later")
    assert isinstance(first, FoundTask)
    assert isinstance(last, Unsupported)
    assert "network" in last.reason


def test_a_file_that_is_a_pointer_is_unsupported(checkout):
    path = checkout / "KernelBench" / "level1" / "2_Scale.py"
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    first, *_ = TRITON.entries(checkout)
    assert isinstance(first, Unsupported)
    assert "git lfs pull" in first.reason


@pytest.mark.slow
def test_a_module_is_imported_and_judges_candidates(checkout, tmp_path, monkeypatch):
    monkeypatch.setenv(IMPORTS, str(tmp_path / "imports"))
    with ImportBench("sim:gfx942") as bench:
        steps = list(import_suite(TRITON, checkout, [bench], None, "level1/2_*"))
    (verdict,) = steps[0].entry.verdicts.values()
    assert verdict.status is ImportStatus.ADMITTED, verdict.reason
    task = get_task("kernelbench/level1/2_Scale")
    assert "class Model(nn.Module)" in task.problem.definition
    unmasked = RIGHT.replace("at % channels", "at % 64")
    renamed = RIGHT.replace("self.weight", "self.gain")
    with Evaluator("sim:gfx942", seed=1) as evaluator:
        outcomes = [evaluator.evaluate(task, text).outcome for text in (RIGHT, unmasked, renamed)]
    assert outcomes == [Outcome.PASSED, Outcome.WRONG_VALUES, Outcome.RUNTIME_ERROR]


def test_a_run_folder_of_kernelbench_is_read(tmp_path):
    (tmp_path / "level_1_problem_23_sample_1_kernel.py").write_text("second")
    (tmp_path / "level_1_problem_23_sample_0_kernel.py").write_text("first")
    (tmp_path / "eval_results.json").write_text("{}")
    sources = read_predictions(tmp_path)
    assert sources == {"level_1_problem_23": ["first"]}
    assert sources[kernelbench_key("level1/23_Softmax")] == ["first"]


def test_another_folder_is_refused(tmp_path):
    with pytest.raises(PredictionError, match="found no level_L_problem_P"):
        read_predictions(tmp_path)


def test_predictions_are_found_by_the_key_of_the_problem(checkout, tmp_path, monkeypatch):
    monkeypatch.setenv(IMPORTS, str(tmp_path / "imports"))
    with ImportBench("sim:gfx942") as bench:
        list(import_suite(TRITON, checkout, [bench], None, "level4/*"))
    sources = {"level_4_problem_1": ["text", "more"]}
    samples = [prediction_for(sources, "kernelbench/level4/1_gpt2", k) for k in (1, 2, 3)]
    assert samples == ["text", "more", None]
