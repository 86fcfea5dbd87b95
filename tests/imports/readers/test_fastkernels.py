"""A tiny checkout in the layout of FastKernels, with its registry of shapes."""

import ast

import pytest

from kernel_gym.imports.bench.import_bench import ImportBench
from kernel_gym.imports.bench.importing import import_suite
from kernel_gym.imports.bench.suite_runner import suite_verdict
from kernel_gym.imports.manifest import ImportStatus
from kernel_gym.imports.readers.base import FoundTask, Unsupported
from kernel_gym.imports.readers.fastkernels import TRITON, _imported, _usable
from kernel_gym.imports.readers.fastkernels_classes import class_of
from kernel_gym.imports.readers.fastkernels_stated import from_shape
from kernel_gym.imports.readers.fastkernels_text import sizes_of, traced_text
from kernel_gym.tasks import get_task
from kernel_gym.tasks.names import IMPORTS

MODULE = '''
import torch
import torch.nn as nn
from fastkernels.infra.numbers import HALF


class RowGate(nn.Module):
    """Gates the first half of a row by the second."""

    def __init__(self, hidden_size: int, eps: float = 1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(hidden_size))

    def forward(self, x, scale):
        first, second = x.chunk(2, dim=-1)
        return first * torch.sigmoid(second) * self.weight * HALF
'''
REGISTRY = """
row_gate:
  scenarios:
  - name: tokens-64/a
    init_args: {training: false, hidden_size: 96}
    inputs:
      x: {shape: [64, 192], dtype: float32}
      scale: 2
other:
  scenarios:
  - name: tokens-1/b
    inputs: {x: {shape: [1, 8], dtype: float32}}
shapeless:
  scenarios:
  - name: tokens-1/c
    inputs: {x: 3}
"""


@pytest.fixture
def checkout(tmp_path):
    files = {
        "__init__.py": "",
        "infra/__init__.py": "",
        "infra/numbers.py": "HALF = 0.5\n",
        "tasks/__init__.py": "",
        "tasks/reference/__init__.py": "",
        "tasks/reference/L1/__init__.py": "",
        "tasks/reference/L1/row_gate.py": MODULE,
        "tasks/reference/L1/other.py": "class A: pass\nclass B: pass\n",
        "tasks/reference/L1/shapeless.py": "class Shapeless: pass\n",
        "bench/kernels/benchmark_scenarios/small/shape_registry.yaml": REGISTRY,
    }
    for name, text in files.items():
        path = tmp_path / "checkout" / "fastkernels" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "checkout"


def test_operations_with_shapes_are_listed_with_their_imports(checkout):
    assert TRITON.detect(checkout)
    other, gate, shapeless = TRITON.entries(checkout)
    assert isinstance(gate, FoundTask)
    assert gate.details["class"] == "RowGate"
    assert "fastkernels/infra/numbers.py" in gate.files
    assert isinstance(other, Unsupported)
    assert "found no class like 'other'" in other.reason
    assert isinstance(shapeless, Unsupported)
    assert "found no inputs with shapes" in shapeless.reason


@pytest.mark.parametrize(
    ("stem", "text", "name"),
    [
        ("row_gate", "class A: pass\nclass RowGate: pass", "RowGate"),
        ("yolov10_conv", "class YOLOConv: pass\nclass B:\n    a = YOLOConv", "YOLOConv"),
        ("flux_feedforward", "class Gelu: pass\nclass FeedForward:\n    a = Gelu", "FeedForward"),
        ("ada_layer_norm", "class LayerNorm: pass\nclass Zero:\n    a = LayerNorm", None),
        ("parallel_linear", "class ColumnParallelLinear: pass\nclass B: pass", None),
        ("anything", "class Only: pass", "Only"),
        ("anything", "class Anythings: pass\nclass B: pass", None),
    ],
)
def test_the_class_of_an_operation_is_found_by_its_name(stem, text, name):
    classes = {node.name: node for node in ast.parse(text).body}
    chosen = class_of(stem, classes)
    assert (chosen.name if chosen else None) == name


CALLED = """
class Rotary:
    def forward(self, x): ...

class RotaryYarn:
    def __init__(self, scale): ...
    def forward(self, x, positions): ...

class YarnOther:
    def forward(self, x, positions): ...
"""


@pytest.mark.parametrize(
    ("stem", "init", "inputs", "name"),
    [
        ("rotary", {}, ["x"], "Rotary"),
        ("rotary", {"scale": 2}, ["x", "positions"], "RotaryYarn"),
        ("rotary", {}, ["x", "positions"], "Rotary"),
        ("turn", {"scale": 2}, ["x", "positions"], "RotaryYarn"),
        ("turn", {}, ["x", "positions"], None),
        ("turn", {}, ["y"], None),
    ],
)
def test_the_class_is_the_only_one_that_takes_the_captured_call(stem, init, inputs, name):
    classes = {node.name: node for node in ast.parse(CALLED).body}
    call = {"init_args": {"training": False, **init}, "inputs": dict.fromkeys(inputs, 1)}
    chosen = class_of(stem, classes, [call])
    assert (chosen.name if chosen else None) == name


def test_a_class_that_no_call_tells_is_named():
    text = CALLED.replace("RotaryYarn", "AdaLayerNormZero")
    text = text.replace("YarnOther", "AdaLayerNormZeroSingle")
    classes = {node.name: node for node in ast.parse(text).body}
    call = {"init_args": {}, "inputs": {"x": 1, "positions": 1}}
    assert class_of("ada_layer_norm", classes, [call]).name == "AdaLayerNormZeroSingle"


def test_classes_whose_names_differ_in_case_alone_are_told_by_the_call():
    text = CALLED.replace("RotaryYarn", "TurnRotary").replace("YarnOther", "TURNRotary")
    classes = {node.name: node for node in ast.parse(text).body}
    call = {"init_args": {"scale": 2}, "inputs": {"x": 1, "positions": 1}}
    assert class_of("turn_rotary", classes, [call]).name == "TurnRotary"


def test_equal_sizes_are_one_axis():
    scenario = {
        "init": {"hidden_size": 96},
        "inputs": {
            "x": {"shape": [64, 96], "dtype": "bfloat16"},
            "y": {"shape": [96], "dtype": "int64"},
        },
    }
    text = traced_text(scenario, "fastkernels/a.py", "A")
    assert "'hidden_size': size_96" in text
    assert "torch.randn((size_64, size_96, ))" in text
    assert "torch.randint(0, 2, (size_96, )" in text
    assert "torch.set_default_dtype(torch.bfloat16)" in text


def test_inner_widths_are_sizes_as_well():
    scenario = {
        "init": {"intermediate_size": 320, "heads": 4},
        "inputs": {"x": {"shape": [64, 96], "dtype": "bfloat16"}},
    }
    text = traced_text(scenario, "fastkernels/a.py", "A")
    assert "size_320 = 320" in text
    assert "{'intermediate_size': size_320, 'heads': 4}" in text


@pytest.mark.parametrize(
    ("inputs", "missing", "expected"),
    [
        ({"x": ([4, 8, 20, 20], "bfloat16")}, {"dim", "c1"}, {"dim": 8, "c1": 8}),
        ({"x": ([4, 8, 96], "bfloat16")}, {"dim"}, {"dim": 96}),
        (
            {"lengths": ([70], "int64"), "x": ([1, 64, 96], "bfloat16")},
            {"hidden_size"},
            {"hidden_size": 96},
        ),
        ({"ids": ([4, 16], "int64")}, {"num_embeddings"}, {"num_embeddings": 16}),
        (
            {"cos": ([64, 36], "bfloat16"), "x": ([64, 1, 96], "bfloat16")},
            {"embed_dim"},
            {"embed_dim": 96},
        ),
        (
            {"x": ([8, 3, 360, 640], "float32")},
            {"img_height", "img_width", "in_chans"},
            {"img_height": 360, "img_width": 640, "in_chans": 3},
        ),
    ],
    ids=["images", "rows", "lengths first", "integers only", "tables first", "sides of images"],
)
def test_parameters_that_the_registry_leaves_out_come_from_a_shape(inputs, missing, expected):
    shapes = {name: {"shape": shape, "dtype": dtype} for name, (shape, dtype) in inputs.items()}
    assert from_shape(shapes, missing) == expected


def call(init, inputs, **more):
    tensors = {
        name: {"shape": one[0], "dtype": one[1]} if isinstance(one, tuple) else one
        for name, one in inputs.items()
    }
    return {"init": init, "inputs": tensors, **more}


@pytest.mark.parametrize(
    ("init", "name", "drawn"),
    [
        ({"num_embeddings": 500}, "input_ids", "randint(0, size_500, (size_64, )"),
        ({"max_position_embeddings": 300}, "positions", "randint(0, size_300, (size_64, )"),
        ({"config": {"namespace": {"vocab_size": 70}}}, "input_ids", "randint(0, size_70, "),
        ({}, "t", "randint(0, 50, "),
        ({}, "mask", "randint(0, 2, "),
    ],
)
def test_integers_reach_all_rows_of_the_table_that_they_index(init, name, drawn):
    assert drawn in traced_text(call(init, {name: ([64], "int64")}), "fastkernels/a.py", "A")


def test_configurations_and_parts_of_a_file_are_constructed():
    init = {
        "config": {"namespace": {"hidden_size": 96, "eps": 1e-5}},
        "rotary_emb": {"class": "Rotary", "given": {"dim": 8}},
    }
    text = traced_text(call(init, {"x": ([64, 96], "float16")}), "fastkernels/a.py", "A")
    assert "'config': SimpleNamespace(hidden_size=size_96, eps=1e-05)" in text
    assert "'rotary_emb': suite.Rotary(dim=8)" in text


def test_the_limits_of_one_sequence_are_made_and_others_are_drawn():
    inputs = {"q": ([70, 4], "float16"), "cu_seqlens_q": ([2], "int32"), "max_seqlen_q": 70}
    text = traced_text(call({}, inputs), "fastkernels/a.py", "A")
    assert "given['cu_seqlens_q'] = Limits([0, size_70])" in text
    assert "'cu_seqlens_q': torch" not in text
    several = traced_text(
        call({}, {**inputs, "cu_seqlens_q": ([3], "int32")}), "fastkernels/a.py", "A"
    )
    assert "'cu_seqlens_q': torch.randint" in several
    assert "Limits" not in several


def test_another_method_and_forgotten_names_are_used():
    made = call({}, {"x": ([64], "float16")}, method="native", aliases={"Norm": "T5Norm"})
    text = traced_text(made, "fastkernels/a.py", "A")
    assert "suite.Norm = suite.T5Norm" in text
    assert "return super().native(**given)" in text


def test_a_size_may_be_the_product_of_two_parameters():
    made = call(
        {"height": 18, "width": 32, "dim": 64},
        {"x": ([8, 576, 64], "float16")},
        product=["height", "width"],
    )
    assert sizes_of(made) == {"height": 18, "width": 32, "size_8": 8, "size_64": 64}
    text = traced_text(made, "fastkernels/a.py", "A")
    assert "torch.randn((size_8, height * width, size_64, ))" in text
    assert "'height': height, 'width': width" in text


def test_positions_may_be_an_axis_of_their_own():
    made = call({}, {"q": ([1, 64, 4, 64], "float16")}, positions=1)
    assert sizes_of(made) == {"positions": 64, "size_64": 64, "size_4": 4}
    text = traced_text(made, "fastkernels/a.py", "A")
    assert "torch.randn((1, positions, size_4, size_64, ))" in text


def test_a_number_that_a_module_keeps_as_a_list_is_a_number_again():
    (node,) = ast.parse(
        "class A:\n def __init__(self, patch: int, stride: tuple): ...\n def forward(self, x): ..."
    ).body
    row = {
        "init_args": {"patch": [20, 20], "stride": [2, 2]},
        "inputs": {"x": {"shape": [4, 3], "dtype": "float32"}},
    }
    (found,) = _usable("a", node, [row])
    assert found["init"] == {"patch": 20, "stride": [2, 2]}


@pytest.mark.parametrize(
    ("text", "file"),
    [
        ("from ..L1.softmax import Softmax", "fastkernels/tasks/L1/softmax.py"),
        ("from . import conv", "fastkernels/tasks/L2/conv.py"),
        ("from fastkernels.tasks.L1 import softmax", "fastkernels/tasks/L1/softmax.py"),
        ("import fastkernels.tasks.L1", "fastkernels/tasks/L1/__init__.py"),
    ],
)
def test_imported_files_are_found(text, file):
    (node,) = ast.parse(text).body
    assert file in _imported(node, "fastkernels/tasks/L2/attention.py")


@pytest.mark.sweep
def test_a_module_is_imported(checkout, tmp_path, monkeypatch):
    monkeypatch.setenv(IMPORTS, str(tmp_path / "imports"))
    with ImportBench("sim:gfx942") as bench:
        (step,) = import_suite(TRITON, checkout, [bench], None, "L1/row_gate")
    (verdict,) = step.entry.verdicts.values()
    assert verdict.status is ImportStatus.ADMITTED, verdict.reason
    names = {argument.name for argument in get_task("fastkernels/L1/row_gate").problem.args}
    assert names == {"x", "weight"}
    half = SUBMITTED.replace("0.5", "0.5005")  # within 1e-3
    with ImportBench("sim:gfx942") as bench:
        verdicts = [
            suite_verdict("fastkernels/L1/row_gate", source, bench)
            for source in (SUBMITTED, half, SUBMITTED.replace("0.5", "0.51"), "x = 1\n")
        ]
    assert [one.correct for one in verdicts] == [True, True, False, False], verdicts
    assert "INCORRECT_NUMERICAL: 0." in verdicts[2].message
    assert "defines no class ModelNew" in verdicts[3].message


SUBMITTED = """
import torch, triton, triton.language as tl

@triton.jit
def gate(x, weight, out, width: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, 128)
    kept = at < width
    first = tl.load(x + row * 2 * width + at, kept)
    second = tl.load(x + row * 2 * width + width + at, kept)
    scaled = first * tl.sigmoid(second) * tl.load(weight + at, kept) * 0.5
    tl.store(out + row * width + at, scaled, kept)

class ModelNew(torch.nn.Module):
    def __init__(self, hidden_size, eps=1e-6):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(hidden_size))

    def forward(self, x, scale):
        out = x.new_empty(x.shape[0], x.shape[1] // 2)
        gate[(x.shape[0],)](x, self.weight, out, out.shape[1])
        return out
"""
