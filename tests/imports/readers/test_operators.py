"""Tiny suites in the layouts of SOL-ExecBench and flashinfer-bench."""

import json
import re

import pytest
import torch
from safetensors.torch import save_file

from kernel_gym.evaluator import Evaluator
from kernel_gym.imports.bench.import_bench import ImportBench
from kernel_gym.imports.bench.importing import import_suite
from kernel_gym.imports.manifest import ImportStatus
from kernel_gym.imports.predictions import prediction_for, read_predictions
from kernel_gym.imports.readers.base import CheckoutError, Unsupported
from kernel_gym.imports.readers.definition_code import adapted, tracing_files
from kernel_gym.imports.readers.definitions import (
    Definition,
    WorkloadRow,
    read_definition,
    read_workloads,
)
from kernel_gym.imports.readers.operators import FLASHINFER_TRITON, SOL_TRITON
from kernel_gym.imports.solutions import SolutionError, read_solution, solution_json
from kernel_gym.records import Outcome
from kernel_gym.tasks import get_task
from kernel_gym.tasks.names import IMPORTS
from kernel_gym.tasks.problem import TensorArg

REFERENCE = """
import torch


def make(axes, device):
    return {"x": torch.randn(axes["rows"], axes["width"], device=device)}


@torch.no_grad()
def run(x, gain_norm_weight, shift):
    return x * gain_norm_weight + shift
"""
DEFINITION = {
    "name": "gain",
    "op_type": "scale",
    "description": "Weighs columns and adds a number.",
    "axes": {
        "rows": {"type": "var"},
        "half": {"type": "const", "value": 64},
        "width": {"type": "expr", "expression": "half * 2"},
    },
    "inputs": {
        "x": {"shape": ["rows", "width"], "dtype": "float32"},
        "gain_norm_weight": {"shape": ["width"], "dtype": "float32"},
        "shift": {"shape": None, "dtype": "float32"},
    },
    "outputs": {"y": {"shape": ["rows", "width"], "dtype": "float32"}},
    "reference": REFERENCE,
}
SCALAR = {"type": "scalar", "value": 0.5}
RANDOM = {"type": "random"}
ROW = {
    "uuid": "one",
    "axes": {"rows": 96},
    "inputs": {"x": RANDOM, "gain_norm_weight": RANDOM, "shift": SCALAR},
}
KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def scale(x, w, y, shift, n, width, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n) * tl.load(w + at % width, mask=at < n) + shift
    tl.store(y + at, value, mask=at < n)


def launch(x, w, shift, y):
    n = x.numel()
    scale[(triton.cdiv(n, 256),)](x, w, y, shift, n, x.shape[1], BLOCK=256)
"""
PASSING = (
    KERNEL
    + """

def run(x, gain_norm_weight, shift, y):
    launch(x, gain_norm_weight, shift, y)
"""
)
RETURNING = (
    KERNEL
    + """

def run(x, gain_norm_weight, shift):
    y = torch.empty_like(x)
    launch(x, gain_norm_weight, shift, y)
    return y
"""
)
TENSORS_ONLY = RETURNING.replace("gain_norm_weight, shift):", "gain_norm_weight):").replace(
    "gain_norm_weight, shift, y)", "gain_norm_weight, 0.5, y)"
)
ARGUMENTS = (
    TensorArg("x", torch.float32, shape="rows, half * 2"),
    TensorArg("gain_norm_weight", torch.float32, shape="half * 2"),
)


def checkout_of(folder, definition=DEFINITION, rows=(ROW,)):
    place = folder / "examples" / "triton" / "gain"
    place.mkdir(parents=True)
    (place / "definition.json").write_text(json.dumps(definition))
    (place / "workload.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder


@pytest.fixture
def parts():
    return Definition.model_validate(DEFINITION), WorkloadRow.model_validate(ROW)


def reason(folder, definition=DEFINITION, rows=(ROW,)):
    (entry,) = SOL_TRITON.entries(checkout_of(folder, definition, rows))
    assert isinstance(entry, Unsupported)
    return entry.reason


def test_a_folder_of_each_suite_is_listed(tmp_path):
    sol = checkout_of(tmp_path / "sol")
    (entry,) = SOL_TRITON.entries(sol)
    assert (entry.name, entry.category) == ("triton/gain", "scale")
    assert not FLASHINFER_TRITON.detect(sol)
    traces = tmp_path / "traces"
    for kind, name, value in (
        ("definitions", "scale/gain.json", DEFINITION),
        ("workloads", "scale/gain.jsonl", {"definition": "gain", "workload": ROW}),
    ):
        path = traces / kind / name
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(value))
    (entry,) = FLASHINFER_TRITON.entries(traces)
    assert entry.name == "scale/gain"
    assert entry.details["workloads"] == 1
    assert not SOL_TRITON.detect(traces)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"axes": {**DEFINITION["axes"], "width": {"type": "expr", "expression": "f(1)"}}}, "Call"),
        ({"axes": {**DEFINITION["axes"], "half": {"type": "const"}}}, "found no value"),
        ({"outputs": {"y": {"shape": ["lanes"], "dtype": "float32"}}}, "found the axis 'lanes'"),
        ({"reference": "def run(x): return x"}, r"found run\(x\)"),
        ({"reference": "x = 1"}, "found no function `run`"),
        ({"reference": "def run(:"}, "does not parse"),
        ({"custom_inputs_entrypoint": "draw"}, "found no function 'draw'"),
        ({"inputs": 3}, "key 'inputs'"),
    ],
)
def test_a_definition_that_does_not_fit_says_why(tmp_path, change, found):
    text = reason(tmp_path, {**DEFINITION, **change})
    assert text.startswith("examples/triton/gain/definition.json")
    assert re.search(found, text), text


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ({**ROW, "axes": {}}, "row 2: axis 'rows': found no size"),
        ({**ROW, "inputs": {"x": RANDOM}}, "row 2: found no source of the input gain_norm_weight"),
        ({"uuid": "two"}, "row 2: key 'axes'"),
    ],
)
def test_a_workload_that_does_not_fit_names_its_row(tmp_path, row, found):
    assert found in reason(tmp_path, rows=(ROW, row))


def test_sizes_are_those_of_the_workload(parts):
    definition, row = parts
    assert definition.sizes(row.axes) == {"rows": 96, "half": 64, "width": 128}


def test_weights_of_a_normalisation_are_not_one(tmp_path, parts):
    text = tracing_files(tmp_path, *parts)["problem.py"]
    assert "1.0 + 0.3 * torch.randn(width,)" in text
    assert "_reference.run(x, gain_norm_weight, 0.5)" in text


def test_recorded_inputs_keep_their_class(tmp_path, parts):
    definition, _ = parts
    recorded = {"offsets": torch.arange(0, 97, 32, dtype=torch.int32)}
    (tmp_path / "blob").mkdir()
    save_file(recorded, tmp_path / "blob" / "one.safetensors")
    changed = {
        **DEFINITION,
        "axes": {**DEFINITION["axes"], "length": {"type": "var"}},
        "inputs": {"x": {"shape": ["length"], "dtype": "int32"}},
        "reference": "def run(x):\n    return x + 1\n",
    }
    source = {"type": "safetensors", "path": "data/blob/one.safetensors", "tensor_key": "offsets"}
    row = {"uuid": "a", "axes": {"rows": 96, "length": 4}, "inputs": {"x": source}}
    definition, stated = Definition.model_validate(changed), WorkloadRow.model_validate(row)
    text = tracing_files(tmp_path, definition, stated)["problem.py"]
    assert "torch.arange(length) * (rows) // (length - 1)" in text
    gone = {**row, "inputs": {"x": {**source, "path": "two.safetensors"}}}
    with pytest.raises(CheckoutError, match="git lfs pull"):
        tracing_files(tmp_path, definition, WorkloadRow.model_validate(gone))
    other = {**row, "inputs": {"x": {**source, "tensor_key": "pages"}}}
    with pytest.raises(CheckoutError, match="expected 'pages'"):
        tracing_files(tmp_path, definition, WorkloadRow.model_validate(other))


@pytest.mark.parametrize("text", ["def run(x, y: broken", "x = 1", TENSORS_ONLY])
def test_a_candidate_with_the_arguments_of_the_task_is_not_changed(parts, text):
    assert adapted(text, *parts, ARGUMENTS, ["rows", "half"]) == text


def test_a_solution_is_read_and_written(tmp_path, parts):
    definition, _ = parts
    path = tmp_path / "one.json"
    for source in (PASSING, RETURNING, TENSORS_ONLY):
        value = solution_json(definition, source, "MI300X", single=False)
        path.write_text(json.dumps(value))
        assert value["spec"]["destination_passing_style"] is (source is PASSING)
        name, text = read_solution(path)
        assert name == "gain"
        assert text.startswith(source)
    assert "def run(x, gain_norm_weight, shift):" in text  # the scalars that their caller gives


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"sources": [{"path": "a.cu", "content": "x"}]}, "found the file 'a.cu'"),
        ({"spec": {"entry_point": "a.cu::run"}}, "expected one Python file"),
        ({"spec": {"entry_point": "run"}}, "expected FILE.py::FUNCTION"),
        ({"spec": {}}, "key 'spec.entry_point'"),
    ],
)
def test_a_solution_that_cannot_be_used_says_why(tmp_path, parts, change, found):
    value = solution_json(parts[0], PASSING, "MI300X", single=True)
    assert value["spec"]["language"] == "triton"
    path = tmp_path / "one.json"
    path.write_text(json.dumps({**value, **change}))
    with pytest.raises(SolutionError, match=found):
        read_predictions(path)


@pytest.mark.slow
def test_an_operator_is_imported_and_judges_solutions(tmp_path, monkeypatch):
    monkeypatch.setenv(IMPORTS, str(tmp_path / "imports"))
    custom = {**ROW, "inputs": {**ROW["inputs"], "x": {"type": "custom"}}}
    definition = {**DEFINITION, "custom_inputs_entrypoint": "make"}
    checkout = checkout_of(tmp_path / "sol", definition, [custom])
    with ImportBench("sim:gfx942") as bench:
        (step,) = import_suite(SOL_TRITON, checkout, [bench])
    (verdict,) = step.entry.verdicts.values()
    assert verdict.status is ImportStatus.ADMITTED, verdict.reason
    task = get_task("sol-execbench/triton/gain")
    assert {axis.name for axis in task.problem.axes} == {"rows", "half"}
    wrong = PASSING.replace("+ shift", "+ shift * 1.1")
    with Evaluator("sim:gfx942", seed=1) as evaluator:
        for source in (PASSING, RETURNING, TENSORS_ONLY):
            evaluation = evaluator.evaluate(task, source)
            assert evaluation.outcome is Outcome.PASSED, evaluation.message
            assert evaluation.speedup > 0
        assert evaluator.evaluate(task, wrong).outcome is Outcome.WRONG_VALUES
    named = solution_json(
        read_definition(checkout, "examples/triton/gain/definition.json"), PASSING, "x", False
    )
    named["spec"]["entry_point"] = "kernel.py::launch"
    (tmp_path / "s.json").write_text(json.dumps(named))
    source = prediction_for(read_predictions(tmp_path / "s.json"), task.id)
    assert source is not None
    assert source.endswith("run = launch\n")


def test_rows_are_read_in_order(tmp_path, parts):
    checkout = checkout_of(tmp_path, rows=(ROW, {**ROW, "uuid": "two"}))
    rows = read_workloads(checkout, "examples/triton/gain/workload.jsonl", parts[0])
    assert [row.uuid for row in rows] == ["one", "two"]
