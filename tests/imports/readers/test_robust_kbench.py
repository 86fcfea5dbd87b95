"""A tiny checkout in the layout of robust-kbench."""

import json

import pytest

from kernel_gym.evaluator import Evaluator
from kernel_gym.imports.bench.import_bench import ImportBench
from kernel_gym.imports.bench.importing import import_suite
from kernel_gym.imports.manifest import ImportStatus
from kernel_gym.imports.readers.base import Unsupported
from kernel_gym.imports.readers.robust_kbench import TRITON
from kernel_gym.records import Outcome
from kernel_gym.tasks import get_task
from kernel_gym.tasks.names import IMPORTS

MODULE = '''
import torch
import torch.nn as nn


def forward_fn(x, w):
    """Weighs columns."""
    return x * w


class Model(nn.Module):
    def __init__(self, width: int, way: str = "plain"):
        super().__init__()
        self.w = nn.Parameter(torch.randn(width))

    def forward(self, x, fn=forward_fn):
        return fn(x, self.w)


def get_inputs(rows: int = 16, width: int = 64):
    return [torch.randn(rows, width)]
'''
CONFIGURATION = {
    "single_input_configs": [{"rows": 32}],
    "single_init_configs": [{"way": "plain"}],
    "single_shared_configs": [{"width": 64}],
    "multi_input_configs": [{"rows": 32}, {"rows": 48}],
    "multi_init_configs": [{"way": "plain"}, {"way": "other"}],
    "multi_shared_configs": [{"width": 128}],
}
BACKWARD = """
import torch
import triton
import triton.language as tl


@triton.jit
def gradients(g, x, w, gx, gw, rows, width, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = at < width
    weight = tl.load(w + at, mask=keep)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(rows):
        grad = tl.load(g + row * width + at, mask=keep)
        total += grad * tl.load(x + row * width + at, mask=keep)
        tl.store(gx + row * width + at, grad * weight, mask=keep)
    tl.store(gw + at, total, mask=keep)


def model_new(grad_output, inputs_0, model_w):
    gx, gw = torch.empty_like(inputs_0), torch.empty_like(model_w)
    rows, width = inputs_0.shape
    grid = (triton.cdiv(width, 64),)
    gradients[grid](grad_output, inputs_0, model_w, gx, gw, rows, width, BLOCK=64)
    return gx, gw
"""


@pytest.fixture
def checkout(tmp_path):
    folder = tmp_path / "checkout" / "tasks" / "gain"
    folder.mkdir(parents=True)
    (tmp_path / "checkout" / "robust_kbench").mkdir()
    for way in ("forward", "backward"):
        (folder / f"func_{way}.py").write_text(MODULE)
        (folder / f"config_{way}.json").write_text(json.dumps(CONFIGURATION))
    return tmp_path / "checkout"


def test_configurations_of_one_operation_are_taken(checkout):
    assert TRITON.detect(checkout)
    forward, backward = TRITON.entries(checkout)
    assert (forward.name, backward.name) == ("gain/forward", "gain/backward")
    stated = forward.details["configurations"]
    assert [(one["inputs"]["rows"], one["init"]["width"]) for one in stated] == [
        (32, 64),
        (32, 128),
        (48, 128),
    ]
    assert {one["init"]["way"] for one in stated} == {"plain"}


@pytest.mark.parametrize(
    ("file", "text", "found"),
    [
        ("config_forward.json", "{", "found no lists of configurations"),
        ("config_forward.json", '{"single_input_configs": []}', "found no lists"),
        ("func_forward.py", "x = 1", "found no `Model` and `get_inputs`"),
    ],
)
def test_a_task_that_cannot_be_read_says_why(checkout, file, text, found):
    (checkout / "tasks" / "gain" / file).write_text(text)
    forward, _ = TRITON.entries(checkout)
    assert isinstance(forward, Unsupported)
    assert found in forward.reason


def test_an_unknown_key_is_named(checkout):
    wrong = {**CONFIGURATION, "single_input_configs": [{"lanes": 3}]}
    (checkout / "tasks" / "gain" / "config_forward.json").write_text(json.dumps(wrong))
    forward, _ = TRITON.entries(checkout)
    assert "found the key 'lanes', expected ['rows', 'way', 'width']" in forward.reason


@pytest.mark.sweep
def test_a_backward_pass_is_imported_and_judges_kernels(checkout, tmp_path, monkeypatch):
    monkeypatch.setenv(IMPORTS, str(tmp_path / "imports"))
    with ImportBench("sim:gfx942") as bench:
        (step,) = import_suite(TRITON, checkout, [bench], None, "*/backward")
    (verdict,) = step.entry.verdicts.values()
    assert verdict.status is ImportStatus.ADMITTED, verdict.reason
    task = get_task("robust-kbench/gain/backward")
    with Evaluator("sim:gfx942", seed=1) as evaluator:
        right = evaluator.evaluate(task, BACKWARD)
        wrong = evaluator.evaluate(task, BACKWARD.replace("grad * weight", "grad"))
    assert right.outcome is Outcome.PASSED, right.message
    assert wrong.outcome is Outcome.WRONG_VALUES
