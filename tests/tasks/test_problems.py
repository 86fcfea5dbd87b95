"""Each problem's oracle against an independent formula, and its stated costs."""

from __future__ import annotations

import math

import pytest
import torch

from kernel_gym.admission.values import MAX_BYTES, MAX_FLOPS
from kernel_gym.tasks import (
    CATEGORIES,
    DISTRIBUTIONS,
    Check,
    Kind,
    Problem,
    Scale,
    Split,
    TensorArg,
    Workload,
    get_problem,
    make_inputs,
    problem_names,
    train_workloads,
)
from kernel_gym.tasks.formula import compare_with_formula, load_formula, widened

each_problem = pytest.mark.parametrize("name", problem_names())


def _workload(name: str, distribution: str = "normal") -> Workload:
    return Workload(
        load_formula(get_problem(name)).small, Split.TRAIN, Kind.TRAIN, distribution=distribution
    )


@each_problem
def test_oracle_agrees_with_an_independent_formula(name):
    problem = get_problem(name)
    for distribution in problem.distributions:
        if distribution == "range_ends":
            continue  # formulas would overflow where the oracle does not
        compare_with_formula(problem, make_inputs(problem, _workload(name, distribution), seed=3))


@pytest.mark.parametrize("name", [n for n in problem_names() if get_problem(n).exchangeable])
def test_answers_exist_when_elements_of_inputs_change_places(name):
    """Timed calls permute elements, if the problem allows it."""
    problem = get_problem(name)
    inputs = make_inputs(problem, _workload(name), seed=3)
    moved = {
        name: value.view(-1).double().roll(-11).to(value.dtype).view(value.shape)
        if isinstance(value, torch.Tensor) and value.is_floating_point()
        else value
        for name, value in inputs.items()
    }
    before, after = problem.oracle(**inputs), problem.oracle(**moved)
    for old, new in zip(before, after, strict=True):
        assert torch.isfinite(new.double()).all() or not torch.isfinite(old.double()).all()


@each_problem
def test_reference_is_close_to_the_oracle_and_has_the_stated_form(name):
    problem = get_problem(name)
    for distribution in problem.distributions:
        workload = _workload(name, distribution)
        inputs = make_inputs(problem, workload, seed=5)
        exact = problem.oracle(**widened(inputs))
        shapes = problem.output_shapes(workload.dims)
        answer = problem.reference(**inputs)
        assert list(shapes) == [output.name for output in problem.outputs]
        for output, ours, truth in zip(problem.outputs, answer, exact, strict=True):
            assert tuple(ours.shape) == shapes[output.name]
            assert ours.dtype == output.dtype
            if output.check is Check.CLOSE:
                unit = torch.finfo(output.dtype).eps
                error = (ours.double() - truth).abs().max()
                assert error <= 8 * unit * truth.abs().max() + 1e-7, (distribution, output.name)
            elif output.check is Check.EXACT:
                assert torch.equal(ours, truth.to(output.dtype))


@each_problem
def test_oracle_does_not_need_converted_inputs(name):
    problem = get_problem(name)
    inputs = make_inputs(problem, _workload(name), seed=1)
    raw = problem.oracle(**inputs)
    wide = problem.oracle(**widened(inputs))
    for left, right in zip(raw, wide, strict=True):
        assert torch.equal(left, right)
        assert left.dtype in (torch.float64, torch.int64)


@each_problem
def test_bytes_are_those_of_the_arguments_and_outputs(name):
    problem = get_problem(name)
    workload = _workload(name)
    inputs = make_inputs(problem, workload, seed=0)
    read = sum(v.numel() * v.element_size() for v in inputs.values() if isinstance(v, torch.Tensor))
    shapes = problem.output_shapes(workload.dims)
    written = sum(math.prod(shapes[out.name]) * out.dtype.itemsize for out in problem.outputs)
    by_hand = load_formula(problem).bytes
    expected = read + written if by_hand is None else by_hand
    in_place = {a.name for a in problem.args if isinstance(a, TensorArg) and a.in_place}
    kept = sum(inputs[name].nbytes for name in in_place)  # a call may leave it as it is
    assert written - kept <= expected <= read + written
    assert problem.bytes(workload.dims) == expected


@each_problem
def test_flops_are_those_counted_by_hand(name):
    problem, formula = get_problem(name), load_formula(get_problem(name))
    flops = problem.flops(formula.small)
    assert flops >= 0
    if formula.flops is not None:
        assert flops == formula.flops


@each_problem
def test_statement_is_complete_and_consistent(name):
    problem = get_problem(name)
    assert problem.category in CATEGORIES
    assert 1 <= problem.level <= 5
    assert set(problem.distributions) <= set(DISTRIBUTIONS)
    inputs = make_inputs(problem, _workload(name), seed=0)
    assert list(inputs) == [arg.name for arg in problem.args]
    for arg in problem.args:
        value = inputs[arg.name]
        if isinstance(arg, TensorArg):
            assert value.dtype == arg.dtype
            assert value.is_contiguous()
            assert arg.shape
        else:
            assert type(value) is arg.type
    points = [*problem.adversarial]
    for scale in Scale:
        points += [*problem.train[scale], *problem.production[scale]]
    assert all(problem.legal(dims) for dims in points)


@pytest.mark.parametrize("scale", list(Scale))
@each_problem
def test_train_workloads_go_through_every_distribution(name, scale):
    problem = get_problem(name)
    workloads = train_workloads(problem, scale)
    assert {w.distribution for w in workloads} == set(problem.distributions)
    assert len({w.key for w in workloads}) == len(workloads) == len(problem.train[scale])


def test_sizes_of_the_simulator_fit_a_laptop():
    for name in problem_names():
        problem = get_problem(name)
        for dims in problem.train[Scale.SIM]:
            assert 10_000 <= problem.bytes(dims) <= MAX_BYTES, (name, dims)
            assert problem.flops(dims) <= MAX_FLOPS, (name, dims)


def test_row_argmax_takes_any_of_several_maxima_and_nothing_else():
    problem = get_problem("row_argmax")
    x = torch.tensor([[1.0, 5.0, 5.0], [2.0, 0.0, 1.0], [3.0, 3.0, 3.0]])
    expected = problem.oracle(x=x.double())[1]

    def wrong(*found: int) -> list[bool]:
        return problem.mismatches("indices", torch.tensor(found), {"x": x}, expected).tolist()

    assert wrong(1, 0, 2) == [False, False, False]
    assert wrong(2, 0, 0) == [False, False, False]
    assert wrong(0, 2, 1) == [True, True, False]
    assert wrong(-1, 3, 10**12) == [True, True, True]


def test_a_problem_without_a_custom_check_says_so():
    problem = get_problem("softmax")
    with pytest.raises(TypeError, match="softmax: output 'out' has no custom check"):
        problem.mismatches("out", torch.zeros(1), {}, torch.zeros(1))


def test_ignored_targets_occur_and_have_no_loss():
    problem = get_problem("cross_entropy")
    inputs = make_inputs(
        problem, Workload({"rows": 200, "vocab": 5}, Split.TRAIN, Kind.TRAIN), seed=2
    )
    ignored = inputs["target"] == inputs["ignore_index"]
    assert 10 < int(ignored.sum()) < 100
    (loss,) = problem.reference(**inputs)
    assert torch.equal(loss[ignored], torch.zeros(int(ignored.sum())))
    assert (loss[~ignored] > 0).all()


def test_equal_problems_are_equal_across_instances():
    problem: Problem = get_problem("softmax")
    assert problem == type(problem)()
    assert hash(problem) == hash(type(problem)())
    assert problem != get_problem("gelu")
