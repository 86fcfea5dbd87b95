"""Contrasts: each tensor is small beside large ones in every evaluation, and large beside small."""

from __future__ import annotations

import pickle

import pytest
import torch

from kernel_gym.judge.expected import answer, compare
from kernel_gym.tasks import (
    Problem,
    Scale,
    TensorArg,
    Workload,
    adversarial_workloads,
    get_problem,
    make_inputs,
    problem_names,
)
from kernel_gym.tasks.contrasts import MAX_GROUPS, contrasts
from kernel_gym.tasks.far_ends import UNSHOWN_GROWTH, few_steps
from kernel_gym.tasks.ranges import is_free, is_wide, ranges_of
from kernel_gym.tasks.special_values import SMALL_LEVELS, all_small, over_range
from kernel_gym.tasks.workload import Magnitude

each_problem = pytest.mark.parametrize("name", problem_names())
SEED = 5


def _made(problem: Problem, seed: int = SEED) -> list[Workload]:
    drawn = adversarial_workloads(problem, Scale.SIM, "triton", seed)
    return [workload for workload in drawn if workload.magnitudes]


def _generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@each_problem
def test_each_free_tensor_is_small_in_one_and_not_in_another(name):
    problem = get_problem(name)
    free = {
        arg.name
        for arg in problem.args
        if isinstance(arg, TensorArg) and is_wide(arg) and is_free(problem, arg)
    }
    for seed in range(3):
        made = contrasts(problem, seed)
        part = {name for magnitudes in made for name in magnitudes}
        assert part <= free
        for tensor in part:
            assert {m.get(tensor, Magnitude.FAR) for m in made} >= {Magnitude.SMALL, Magnitude.FAR}
        for tensor in free - part:  # no value of its range is small
            low, high = ranges_of(problem).limits(tensor)
            assert low > max(SMALL_LEVELS) or high < -max(SMALL_LEVELS)


@each_problem
def test_their_sizes_are_small_and_legal(name):
    problem = get_problem(name)
    for scale in Scale:
        dims = few_steps(problem, scale)
        assert problem.legal(dims)
        smallest = min(map(problem.elements, problem.train[scale]))
        assert problem.elements(dims) <= UNSHOWN_GROWTH * smallest
    assert all(workload.dims == few_steps(problem, Scale.SIM) for workload in _made(problem))


@each_problem
def test_honest_answers_exist_on_them(name):
    problem = get_problem(name)
    for workload in _made(problem):
        expected = answer(problem, make_inputs(problem, workload, SEED))
        pairs = zip(problem.outputs, expected.reference, strict=True)
        rounded = tuple(value.to(output.dtype) for output, value in pairs)
        check = compare(problem, expected, rounded)
        assert check.passed, (str(workload), check.message)


@each_problem
def test_their_values_stay_within_the_stated_ranges(name):
    problem = get_problem(name)
    for workload in _made(problem):
        inputs = make_inputs(problem, workload, SEED)
        for tensor, size in workload.magnitudes.items():
            value, limits = inputs[tensor].double(), ranges_of(problem).limits(tensor)
            if size in (Magnitude.SMALL, Magnitude.SMALL_POSITIVE):
                assert 0 < float(value.abs().max()) <= 1e-4
                assert float(value.abs().min()) > 0
            if limits is not None:
                value = value[value > -torch.inf]  # logits of tokens that are ruled out
                slack = 1e-3 * max(map(abs, limits))
                assert limits[0] - slack <= float(value.min())
                assert float(value.max()) <= limits[1] + slack


def test_a_problem_states_which_tensors_are_small_together_and_without_signs():
    *_, first, second = contrasts(get_problem("mamba2_ssd"), SEED)
    assert first == {"b": Magnitude.SMALL, "d": Magnitude.SMALL, "x": Magnitude.FAR}
    assert second == {"c": Magnitude.SMALL, "d": Magnitude.SMALL, "x": Magnitude.FAR}
    problem = get_problem("rwkv7_recurrence")
    workload = _made(problem)[-1]
    assert workload.magnitudes["a"] is Magnitude.SMALL_POSITIVE
    assert workload.magnitudes["b"] is Magnitude.FAR_POSITIVE
    assert workload.magnitudes["r"] is Magnitude.POSITIVE
    inputs = make_inputs(problem, workload, SEED)
    assert all(float(value.min()) >= 0 for value in inputs.values())
    assert float(inputs["a"].max()) < 1e-4
    assert float(inputs["b"].max()) == 1.5
    assert float(inputs["r"].max()) > 1


def test_an_attention_has_a_small_query_beside_large_keys():
    made = _made(get_problem("causal_attention"))
    pairs = {(workload.magnitudes["q"], workload.magnitudes["k"]) for workload in made}
    assert (Magnitude.SMALL, Magnitude.FAR) in pairs
    assert len(made) == 6


def test_many_weights_share_groups_that_the_seed_decides():
    problem = get_problem("llama_decoder_layer")
    first, second = (contrasts(problem, seed) for seed in (1, 2))
    assert len(first) == 2 * MAX_GROUPS + len(ranges_of(problem).contrasts)
    assert first != second
    assert first == contrasts(problem, 1)


def test_tensors_whose_ends_overflow_together_are_large_one_at_a_time():
    problem = get_problem("selective_scan")
    apart = ranges_of(problem).apart
    assert apart
    for magnitudes in contrasts(problem, SEED):
        assert sum(magnitudes.get(name) is Magnitude.FAR for name in apart) <= 1


def test_small_values_keep_their_signs_and_lie_above_a_bfloat16():
    value = torch.randn(1000, generator=_generator())
    small = all_small(value, None, _generator())
    assert torch.equal(small < 0, value < 0)
    lost = (small - small.bfloat16()).abs() / small.abs()
    assert float(lost.min()) > 0.75 * 2**-8
    positive = all_small(value, (0.0, 1.0), _generator())
    assert float(positive.min()) > 0
    assert float(all_small(value, (9e-5, 1.0), _generator()).min()) == pytest.approx(9e-5)


@pytest.mark.parametrize("count", [1, 2, 50])
def test_a_tensor_over_its_range_holds_the_ends(count):
    value = over_range(torch.zeros(count), (-2.0, 8.0), _generator())
    assert float(value.max()) == 8.0
    assert count == 1 or float(value.min()) == -2.0


def test_magnitudes_are_part_of_a_workload():
    first, second = _made(get_problem("rms_norm"))[:2]
    assert first.dims == second.dims
    assert first.key != second.key
    assert pickle.loads(pickle.dumps(first)) == first
    assert "small" in str(first)
