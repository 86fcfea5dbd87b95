"""The negative controls: wrong answers, or a reason why they do not apply."""

from __future__ import annotations

import ast

import pytest
import torch

from kernel_gym.tasks import Kind, Split, Workload, get_problem, problem_names
from kernel_gym.tasks.controls.answers import CONTROLS, ControlCase, same_bits
from kernel_gym.tasks.controls.kernels import KERNELS, no_op, stale, zeros
from kernel_gym.tasks.controls.low_precision import accumulated_coarsely
from kernel_gym.tasks.embedded import EXTRAS
from kernel_gym.tasks.problem import Output


def case(name, dims, seed=0, distribution="normal"):
    workload = Workload(dims, Split.TRAIN, Kind.TRAIN, distribution=distribution)
    return ControlCase(get_problem(name), workload, seed)


def test_all_controls_are_there():
    assert list(CONTROLS) == [
        *("zeros", "constant", "mean", "stale output", "echo of an input", "bias only"),
        *("last tile unwritten", "half the rows skipped", "wrong epsilon", "fixed argument"),
        *("dropped residual", "low-precision accumulation", "padding takes part", "no-op launch"),
    ]


def test_each_output_is_corrupted_alone():
    answers = CONTROLS["zeros"](case("add_rms_norm", {"rows": 4, "cols": 64}))
    assert set(answers) == {"out", "residual_out"}
    answer = case("add_rms_norm", {"rows": 4, "cols": 64}).answer
    assert answers["out"][0].count_nonzero() == 0
    assert torch.equal(answers["out"][1], answer[1])


def test_every_result_is_wrong_and_has_the_form_of_an_answer():
    one = case("layer_norm", {"rows": 4, "cols": 256}, distribution="tiny")
    for name, control in CONTROLS.items():
        answers = control(one)
        if isinstance(answers, str):  # 256 columns are whole tiles, and rows are independent
            assert name in ("dropped residual", "padding takes part")
            continue
        for label, outputs in answers.items():
            assert not same_bits(outputs, one.answer), (name, label)
            for wrong, right in zip(outputs, one.answer, strict=True):
                assert (wrong.shape, wrong.dtype) == (right.shape, right.dtype)
                assert wrong.is_contiguous()


@pytest.mark.parametrize(
    ("control", "name", "dims", "reason"),
    [
        ("wrong epsilon", "softmax", {"rows": 2, "cols": 8}, "epsilon"),
        ("dropped residual", "softmax", {"rows": 2, "cols": 8}, "residual"),
        ("bias only", "matmul", {"m": 2, "n": 3, "k": 4}, "bias"),
        ("echo of an input", "matmul", {"m": 2, "n": 3, "k": 4}, "as many elements"),
        ("low-precision accumulation", "gelu", {"rows": 2, "cols": 128}, "too few terms"),
        ("padding takes part", "matmul", {"m": 2, "n": 3, "k": 4}, "change nothing"),
        ("padding takes part", "softmax", {"rows": 2, "cols": 128}, "change nothing"),
        ("mean", "cross_entropy", {"rows": 1, "vocab": 8}, "single number"),
    ],
)
def test_a_control_says_why_it_does_not_apply(control, name, dims, reason):
    assert reason in CONTROLS[control](case(name, dims))


def test_the_reference_cannot_change_the_inputs():
    one = case("softmax", {"rows": 2, "cols": 8})
    before = one.inputs["x"].clone()
    one.inputs["x"].data_ptr()
    _ = one.answer, one.other_answer
    assert torch.equal(one.inputs["x"], before)
    assert not torch.equal(one.answer[0], one.other_answer[0])


@pytest.mark.parametrize(
    ("name", "dims"),
    [
        ("matmul", {"m": 8, "n": 8, "k": 1024}),
        ("softmax", {"rows": 4, "cols": 1024}),
        ("layer_norm", {"rows": 4, "cols": 1024}),
        ("cumsum", {"rows": 4, "cols": 1024}),
        ("causal_attention", {"batch": 1, "heads": 1, "seq": 128, "head_dim": 64}),
    ],
)
def test_coarse_sums_are_near_and_not_equal(name, dims):
    one = case(name, dims)
    (found,) = accumulated_coarsely(one.problem, one.inputs)
    (right,) = one.answer
    error = (found.double() - right.double()).norm() / right.double().norm()
    unit = torch.finfo(found.dtype).eps
    assert unit / 2 < error < 64 * unit


def test_short_sums_are_not_changed():
    one = case("matmul", {"m": 8, "n": 8, "k": 63})
    assert accumulated_coarsely(one.problem, one.inputs) is None


def test_convolutions_are_sums_too():
    class Convolution(type(get_problem("softmax"))):
        def oracle(self, x):
            image = x.double().reshape(1, 64, 8, 8)
            weight = torch.arange(64 * 64 * 9).reshape(64, 64, 3, 3).double().sin()
            return (torch.nn.functional.conv2d(image, weight, padding=1),)

    x = torch.randn(1, 4096, generator=torch.Generator().manual_seed(0))
    (found,) = accumulated_coarsely(Convolution(), {"x": x})
    (exact,) = Convolution().oracle(x)
    error = (found.double() - exact).norm() / exact.norm()
    assert 2**-11 < error < 2**-6


def test_emptied_triton_kernels_still_launch():
    tree = ast.parse(no_op(get_problem("softmax"), "triton"))
    functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
    assert ast.unparse(functions["softmax_kernel"].body) == "pass"
    assert "softmax_kernel[rows,]" in ast.unparse(functions["softmax"])
    assert "torch.zeros(" in zeros(get_problem("softmax"), "triton")
    assert "torch.zeros(" not in no_op(get_problem("softmax"), "triton")


@pytest.mark.parametrize("language", EXTRAS)
def test_emptied_kernels_in_an_embedded_language_keep_their_grid(language):
    empty = {"flydsl": ["pass"], "tilelang": ["T.evaluate(0)"]}[language]
    names = [name for name in problem_names() if get_problem(name).kernel(language)]
    assert len(names) > 8
    for name in names:
        kernel = ast.parse(get_problem(name).kernel(language) or "")
        emptied = ast.parse(no_op(get_problem(name), language))
        assert [ast.unparse(body) for body in _bodies(emptied)] == empty * len(_bodies(kernel))
        assert _grids(emptied) == _grids(kernel), name


def _bodies(tree):
    """The bodies of kernels: in TileLang those of their grids."""
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    marks = {f: ast.unparse(f.decorator_list) for f in functions if f.decorator_list}
    flydsl = [f.body for f, mark in marks.items() if "flyc.kernel" in mark]
    return flydsl or [n.body for n in ast.walk(tree) if isinstance(n, ast.With)]


def _grids(tree):
    """The places where a source states the grid of a kernel."""
    calls = [ast.unparse(n) for n in ast.walk(tree) if isinstance(n, ast.Call)]
    return [c for c in calls if c.partition("(")[0] == "T.Kernel" or "launch(" in c]


def test_emptied_hip_kernels_keep_everything_else():
    for name in problem_names():
        problem = get_problem(name)
        source = problem.kernel("hip")
        if source is None:
            continue
        emptied = no_op(problem, "hip")
        assert emptied.count("__global__") == source.count("__global__")
        assert emptied.count("<<<") == source.count("<<<")
        bodies = emptied.split("__global__")[1:]
        assert all(body.split("{", 1)[1].startswith("}") for body in bodies)


def test_a_stale_kernel_answers_from_memory():
    class Plain(type(get_problem("softmax"))):
        def kernel(self, language):
            return "def softmax(x):\n    return x + 1"

    scope = {}
    exec(stale(Plain(), "triton"), scope)
    first = scope["softmax"](torch.zeros(2))
    assert scope["softmax"](torch.ones(2)) is first
    assert torch.equal(scope["softmax"](torch.ones(3)), torch.full((3,), 2.0))


def test_kernel_controls_are_named_as_the_others():
    assert {name for kernels in KERNELS.values() for name in kernels} <= set(CONTROLS)


def test_padding_that_takes_part_is_that_of_a_kernel_without_masks():
    one = case("softmax", {"rows": 2, "cols": 130})
    answers = CONTROLS["padding takes part"](one)
    filled = torch.nn.functional.pad(one.inputs["x"].double(), (0, 126))
    assert set(answers) == {"cols"}  # rows are independent
    expected = torch.softmax(filled, 1)[:, :130].half()
    assert torch.equal(answers["cols"][0], expected)
    assert answers["cols"][0].shape == one.answer[0].shape


class LargestOfRows(type(get_problem("softmax"))):
    """The maximum of each row. Padding zeros change it if all values are negative."""

    outputs = (Output("out", torch.float16, shape="rows"),)

    def oracle(self, x):
        return (x.double().amax(1),)

    def reference(self, x):
        return (x.amax(1),)


def test_padding_takes_part_in_a_maximum_of_negative_values_alone():
    workload = Workload({"rows": 64, "cols": 2}, Split.TRAIN, Kind.TRAIN)
    one = ControlCase(LargestOfRows(), workload, 0)
    (found,) = CONTROLS["padding takes part"](one)["cols"]
    assert torch.equal(found, one.answer[0].clamp_min(0))
    wide = ControlCase(
        LargestOfRows(), Workload({"rows": 4, "cols": 999}, Split.TRAIN, Kind.TRAIN), 0
    )
    assert "change nothing" in CONTROLS["padding takes part"](wide)
