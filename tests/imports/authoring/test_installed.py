"""A class of an installed package becomes a file of one's own; texts of the process stay data."""

from __future__ import annotations

import ast
import shlex

import pytest
import torch

from kernel_gym.imports.authoring.installed import of_installed
from kernel_gym.imports.authoring.profile import NOT_PLAIN, _found
from kernel_gym.imports.authoring.tracer import _explained
from kernel_gym.imports.tracing.profile import _constructor

LINEAR = {
    "name": "Linear",
    "module": "torch.nn.modules.linear",
    "made": {"in_features": {"value": 8}, "out_features": {"value": 4}},
}


def test_the_file_derives_a_class_and_states_its_arguments():
    made = of_installed(LINEAR)
    scope = {}
    exec(made.text, scope)
    module = scope["OwnLinear"](**scope["arguments"]())
    assert (module.in_features, module.out_features, made.open) == (8, 4, False)


def test_an_unknown_argument_is_left_open():
    made = of_installed({**LINEAR, "made": {"in_features": None}})
    assert made.open
    assert "{'in_features': ...}" in made.text


def test_a_configuration_is_imported_by_name():
    given = {"module": "a.b", "name": "Config", "given": {"hidden": 8, "kind": "x", "no name": 1}}
    text = of_installed({**LINEAR, "made": {"config": given}}).text
    assert text.startswith("from a.b import Config\n")
    assert "{'config': Config(hidden=8, kind='x')}" in text


@pytest.mark.parametrize(
    "change",
    [
        {"name": "Linear; import os"},
        {"module": "os\nimport sys"},
        {"module": None},
        {"module": "__main__"},
        {"made": {"a b": {"value": 1}}},
    ],
)
def test_what_is_no_name_makes_no_file(change):
    assert of_installed({**LINEAR, **change}) is None


@pytest.mark.parametrize("value", ["'); import os; ('", "\n", {"module": "a b"}, [1], 1e400])
def test_values_are_literals(value):
    text = of_installed({**LINEAR, "made": {"x": {"value": value}}}).text
    (statement,) = ast.parse(text).body[-1].body
    assert isinstance(statement.value.values[0], ast.Constant)


def test_arguments_are_read_from_attributes_of_the_same_name():
    made = _constructor(torch.nn.Linear(8, 4))
    assert made == {"in_features": {"value": 8}, "out_features": {"value": 4}}


def test_each_module_has_a_command_or_advice(tmp_path):
    inputs = [{"name": "x", "dtype": "float32", "shape": [2, 64, 8]}]
    row = {**LINEAR, "inputs": inputs, "plain": True, "share": 0.5, "calls": 3}
    module = _found(row, tmp_path / "script.py")
    assert "own_linear.py:OwnLinear --init" in module.command
    assert module.file == "own_linear.py"
    assert _found({**row, "plain": False}, tmp_path / "script.py").advice == NOT_PLAIN


def test_indices_have_a_range_and_free_sizes(tmp_path):
    inputs = [{"name": "ids", "dtype": "int64", "shape": [1, 32], "below": 512}]
    row = {**LINEAR, "inputs": inputs, "plain": True, "share": 0.5, "calls": 3}
    command = shlex.split(_found(row, tmp_path / "script.py").command)
    assert command[command.index("--shapes") + 1] == "ids: int64 < 512 [d1, d32]"
    assert command[command.index("--sizes") + 1] == "d1=1 d32=32"


def test_indices_share_the_width_of_real_inputs(tmp_path):
    inputs = [
        {"name": "x", "dtype": "float32", "shape": [32, 128]},
        {"name": "chosen", "dtype": "int64", "shape": [32, 2], "below": 4},
        {"name": "weights", "dtype": "float32", "shape": [32, 2], "below": None},
    ]
    row = {**LINEAR, "inputs": inputs, "plain": True, "share": 0.5, "calls": 3}
    module = _found(row, tmp_path / "script.py")
    stated = "x: float32[d32, 128]; chosen: int64 < 4 [d32, 2]; weights: float32[d32, 2]"
    assert stated in module.command
    assert module.what.endswith(
        "(x: float32[32, 128]; chosen: int64[32, 2]; weights: float32[32, 2])"
    )


@pytest.mark.parametrize(
    ("kind", "message", "advice"),
    [
        ("DynamicOutputShapeException", "aten.nonzero.default", "routing of experts"),
        ("RuntimeError", "0 active drivers ([]). There should only be one.", "--record"),
    ],
)
def test_a_failure_names_the_cure(kind, message, advice):
    assert advice in _explained({"type": kind, "message": message})
