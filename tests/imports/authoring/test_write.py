"""A user's code becomes a problem that computes the same, or is refused with the reason."""

from pathlib import Path

import pytest
import torch

from kernel_gym.imports.authoring.request import TracingRequest, parse_shapes
from kernel_gym.imports.authoring.tracer import CodeError
from kernel_gym.imports.authoring.write import trace_problem, write_problem
from kernel_gym.imports.traced.loading import load_text
from kernel_gym.judge.expected import compare, expect
from kernel_gym.tasks.problem import Check, Scale
from kernel_gym.tasks.sampling import train_workloads

TEN = (Path(__file__).parent / "modules" / "ten.py").read_text()
pytestmark = pytest.mark.slow


def traced(target, inputs, source=TEN):
    request = TracingRequest({"m.py": source}, f"m.py:{target}", f"m.py:{inputs}")
    return trace_problem(request, "mine", "a test")


def problem_of(target, inputs, source=TEN):
    return load_text("mine", traced(target, inputs, source).problem)


def test_a_module_becomes_a_problem_with_parameters_as_inputs():
    problem = problem_of("RMSNormBlock", "rms_inputs")
    assert [arg.name for arg in problem.args] == ["x", "residual", "weight"]
    assert {axis.name for axis in problem.axes} == {"batch", "seq", "hidden"}
    assert problem.args[2].shape == "hidden"
    assert problem.parameters == {"weight"}
    workload = train_workloads(problem, Scale.SIM)[0]
    expected = expect(problem, workload, 0)
    assert expected.oracle[0].dtype is torch.float64
    weight = expected.inputs["weight"]
    assert weight.std() > 0.1  # not all ones, as the module starts with
    assert compare(problem, expected, expected.reference).passed
    wrong = (expected.reference[0] * 1.05,)
    assert not compare(problem, expected, wrong).passed


def test_arguments_that_are_written_become_outputs():
    problem = problem_of("momentum_step", "step_inputs")
    assert len(problem.outputs) == 2
    workload = train_workloads(problem, Scale.SIM)[0]
    expected = expect(problem, workload, 0)
    before = expected.inputs["momentum"].clone()
    problem.reference(**expected.inputs)
    assert torch.equal(before, expected.inputs["momentum"])


def test_quantised_codes_may_differ_by_one():
    problem = problem_of("quantise_tokens", "token_inputs")
    assert [output.check for output in problem.outputs] == [Check.CUSTOM, Check.CLOSE]


def test_a_custom_autograd_function_is_traced_through_its_backward_pass():
    problem = problem_of("squared_relu_backward", "relu_inputs")
    x, gradient = torch.randn(4, 5), torch.randn(4, 5)
    (found,) = problem.reference(x=x, gradient=gradient)
    torch.testing.assert_close(found, 2 * torch.relu(x) * gradient)


def test_indices_stay_legal():
    problem = problem_of("FocalLoss", "loss_inputs")
    for workload in train_workloads(problem, Scale.SIM):
        target = expect(problem, workload, 3).inputs["target"]
        assert target.dtype is torch.int64
        assert 0 <= int(target.min()) <= int(target.max()) < workload.dims["classes"]


NETWORK = """
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.first = nn.Conv2d(3, 512, 3, padding=1)
        self.second = nn.Conv2d(512, 1024, 3, padding=1)
        self.last = nn.Linear(1024, classes)

    def forward(self, x):
        x = torch.relu(self.second(torch.relu(self.first(x))))
        return self.last(x.mean((2, 3)))


classes = 100


def net_inputs():
    return [torch.rand(4, 3, 32, 32)]


def net_init():
    return [classes]
"""


def test_a_network_with_fixed_channels_has_a_twin_with_fewer():
    request = TracingRequest({"m.py": NETWORK}, "m.py:Net", "m.py:net_inputs", "m.py:net_init")
    text = trace_problem(request, "mine", "a test")
    problem = load_text("mine", text.problem)
    assert {"width_512", "width_1024"} <= {axis.name for axis in problem.axes}
    full, small = (problem.train[scale][0] for scale in (Scale.FULL, Scale.SIM))
    assert (full["width_512"], full["width_1024"]) == (512, 1024)
    assert problem.bytes(small) < 5_000_000 < problem.bytes(full)
    assert "ModelNew(*args, **kwargs)" in text.adapter


MASKED = """
import torch
import torch.nn as nn


class Masked(nn.Module):
    def __init__(self, longest):
        super().__init__()
        self.register_buffer("mask", torch.tril(torch.ones(longest, longest)))

    def forward(self, x):
        seq = x.shape[1]
        return (x @ x.transpose(1, 2)) * self.mask[:seq, :seq]


longest = 64
batch, seq, width = 4, 32, 16


def masked_inputs():
    return [torch.rand(batch, seq, width)]


def masked_init():
    return [longest]
"""


def test_a_size_ends_where_a_buffer_of_the_code_ends():
    request = TracingRequest(
        {"m.py": MASKED}, "m.py:Masked", "m.py:masked_inputs", "m.py:masked_init"
    )
    problem = load_text("mine", trace_problem(request, "mine", "a test").problem)
    highest = {axis.name: axis.high for axis in problem.axes}
    assert highest == {"batch": 16, "seq": 63, "width": 64}
    for scale in Scale:
        assert all(
            dims["seq"] <= 63 for dims in (*problem.train[scale], *problem.production[scale])
        )


QUARTERS = """
import torch
from torch import nn

class WithQuarters(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width + 2 * (width // 4)))

    def forward(self, x):
        return x.sum(1, keepdim=True) * self.weight

def row_inputs(rows=64, width=256):
    return [torch.randn(rows, width)]
"""


def test_a_size_varies_in_steps_that_divide_a_quotient():
    problem = problem_of("WithQuarters", "row_inputs", QUARTERS)
    (width,) = (axis for axis in problem.axes if axis.name == "width")
    assert width.multiple == 4
    assert problem.args[1].shape == "width * 3 // 2"


RESERVED = """
import torch
from torch import nn

class Product(nn.Module):
    def __init__(self, width=256, inner=384):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inner, width))
        self.bias = nn.Parameter(torch.empty(inner))

    def forward(self, x):
        return nn.functional.linear(x, self.weight, self.bias)

def product_inputs(rows=64, width=256):
    return [torch.randn(rows, width)]
"""


def test_parameters_that_the_code_only_reserves_are_drawn_like_those_of_a_layer():
    text = traced("Product", "product_inputs", RESERVED).problem
    assert "'weight': values.weight(1.0, (384, width)" in text
    assert "'bias': values.around(0.0, 0.3, (384,)" in text


def test_a_copy_to_a_device_goes_to_that_of_the_arguments():
    source = "import torch\n\n\ndef moved(x):\n    return x.tanh().to(x.device, torch.float32)\n"
    request = TracingRequest(
        {"m.py": source}, "m.py:moved", shapes=parse_shapes("x: float32[rows, cols]")
    )
    text = trace_problem(request, "moved", "a test").problem
    assert "to.device(tanh, x.device, torch.float32" in text
    (answer,) = load_text("moved", text).reference(x=torch.ones(2, 3))
    assert torch.equal(answer, torch.ones(2, 3).tanh())


def test_stated_shapes_are_enough():
    source = "import torch\n\n\ndef twice(x):\n    return torch.tanh(x) * 2\n"
    shapes = parse_shapes("x: float32[rows, cols]")
    request = TracingRequest({"m.py": source}, "m.py:twice", shapes=shapes)
    problem = load_text("twice", trace_problem(request, "twice", "a test").problem)
    assert problem.args[0].shape == "rows, cols"
    assert problem.output_shapes({"rows": 3, "cols": 5}) == {"out": (3, 5)}
    assert problem.bytes({"rows": 3, "cols": 5}) == 2 * 3 * 5 * 4


def test_a_folder_of_the_ordinary_layout_is_written(tmp_path):
    request = TracingRequest({"m.py": TEN}, "m.py:decayed_scan", "m.py:scan_inputs")
    written = write_problem(request, "decayed_scan", tmp_path, "a test")
    names = {path.name for path in written.folder.iterdir()}
    assert names == {"problem.py", "original.py", "formula_stub.py"}
    assert "torch.sigmoid" in (written.folder / "original.py").read_text()


HEAD = "import torch\nfrom torch import nn\n\n\ndef make(rows=64, cols=32):\n"
MAKE = HEAD + "    return torch.randn(rows, cols)\n\n\n"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("def f(x):\n    return x + torch.randn_like(x)\n", "draws random numbers"),
        ("def f(x):\n    return x.sum().item()\n", "must not depend on values"),
        ("def f(x):\n    return 3\n", "returns a int, expected tensors"),
        ("def f(x):\n    return None\n", "returns no tensor"),
        ("def f(x):\n    import no_such_package\n", "ModuleNotFoundError.*install"),
        (
            "import urllib.request\n\n\ndef f(x):\n"
            "    urllib.request.urlopen('http://example.com')\n    return x\n",
            "no network",
        ),
        ("def f(x):\n    open('weights.bin')\n    return x\n", "sees no files"),
        ("def f(x):\n    return torch.fft.fft(x)\n", "complex64"),
        ("def f(x):\n    import os\n    os._exit(0)\n", "the process ended"),
        ("class f:\n    pass\n", "expected a torch.nn.Module"),
        (
            "class f(nn.Module):\n    def __init__(self, often):\n        super().__init__()\n",
            "needs the argument 'often'",
        ),
        ("def g(x):\n    return x\n", "defines no 'f'"),
        ("def f(x):\n    return x.reshape(3, 7)\n", "RuntimeError"),
    ],
)
def test_what_cannot_be_a_problem_is_named(body, message):
    with pytest.raises(CodeError, match=message):
        traced("f", "make", MAKE + body)


def test_inputs_without_free_sizes_are_refused():
    source = (
        "import torch\n\n\ndef make():\n    return torch.ones(1)\n\n\ndef f(x):\n    return x\n"
    )
    with pytest.raises(CodeError, match="no size of its inputs can vary"):
        traced("f", "make", source)


def test_the_code_runs_in_another_process_without_files(tmp_path):
    mark = tmp_path / "mark"
    body = f"import os\nopen({str(mark)!r}, 'w').write('x')\n\n\ndef f(x):\n    return x\n"
    with pytest.raises(CodeError):
        traced("f", "make", MAKE + body)
    assert not mark.exists()


def test_dropout_is_traced_in_evaluation_mode():
    body = (
        "class f(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.drop = nn.Dropout(0.5)\n\n    def forward(self, x):\n"
        "        return torch.relu(self.drop(x)) + x.square()\n"
    )
    text = traced("f", "make", MAKE + body)
    assert "evaluation mode" in text.notes[0]


RECURRENT = """
import torch

batch, seq, width = 2, 6, 8


class Recurrent(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = torch.nn.LSTM(width, 4, batch_first=True)

    def forward(self, x, h, c):
        return self.layer(x, (h, c))


def inputs():
    h = torch.rand(1, batch, 4)
    return [torch.rand(batch, seq, width), h, torch.rand(1, batch, 4)]


def init():
    return [width]
"""


def test_a_recurrent_layer_computes_what_pytorch_does():
    request = TracingRequest({"m.py": RECURRENT}, "m.py:Recurrent", "m.py:inputs", "m.py:init")
    problem = load_text("mine", trace_problem(request, "mine", "a test").problem)
    assert {axis.name for axis in problem.axes} == {"batch", "seq", "width"}
    workload = train_workloads(problem, Scale.SIM)[0]
    expected = expect(problem, workload, 0)
    given = {name: value.double() for name, value in expected.inputs.items()}
    layer = torch.nn.LSTM(workload.dims["width"], 4, batch_first=True).double()
    for name, parameter in layer.named_parameters():
        parameter.data.copy_(given[f"layer_{name}"])
    with torch.no_grad():
        out, states = layer(given["x"], (given["h"], given["c"]))
    assert out.shape[1] == workload.dims["seq"]
    for oracle, value in zip(expected.oracle, (out, *states), strict=True):
        torch.testing.assert_close(oracle, value)
