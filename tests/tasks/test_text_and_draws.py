"""Draws reach all that a prompt calls legal: scalars, sizes, dtypes, shapes and layouts."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
import torch

from kernel_gym.tasks import (
    Mode,
    Problem,
    Scale,
    Task,
    TensorArg,
    Workload,
    adversarial_workloads,
    get_problem,
    make_inputs,
    problem_names,
    train_workloads,
    unseen_workloads,
)
from kernel_gym.tasks.far_ends import far_end
from kernel_gym.tasks.problem import Dims
from kernel_gym.tasks.prompting import prompt
from kernel_gym.tasks.shapes import shape_of
from kernel_gym.tasks.workload import Layout, Split

each_problem = pytest.mark.parametrize("name", problem_names())
SEEDS = range(12)
SIZE = re.compile(r"^- (\w+): (\d+) to (\d+)(?:, a multiple of (\d+))?$", re.MULTILINE)
SCALAR = re.compile(r"^- (\w+): (int|float), (\S+) to (\S+)$", re.MULTILINE)
CHOICE = re.compile(r"^- (\w+): (?:int|float), one of (.+)$", re.MULTILINE)
TENSOR = re.compile(r"^- (\w+): (\w+)\[(.*)\](?: \(written in place\))?$", re.MULTILINE)
ROUNDED = 1e-5
"""How far a printed bound of six digits may be from the bound, relative to it."""


def _text(problem: Problem) -> str:
    return prompt(Task(problem, Mode.INSTRUCTION2TRITON), "facts")


def _hidden(problem: Problem, language: str = "triton") -> list[Workload]:
    return [
        workload
        for seed in SEEDS
        for workload in (
            *adversarial_workloads(problem, Scale.SIM, language, seed),
            *unseen_workloads(problem, Scale.SIM, language, seed),
        )
    ]


@each_problem
def test_sizes_reach_what_the_text_says(name):
    problem = get_problem(name)
    stated = {n: (int(low), int(high)) for n, low, high, _ in SIZE.findall(_text(problem))}
    assert set(stated) >= {axis.name for axis in problem.axes}
    drawn = [*_hidden(problem), *train_workloads(problem, Scale.SIM)]
    always = [workload for workload in drawn if workload.split is not Split.UNSEEN]
    for axis in problem.axes:
        sizes = {workload.dims[axis.name] for workload in drawn}
        low, high = stated[axis.name]
        assert low <= min(sizes) <= max(sizes) <= high
        least = _least(problem, axis.name, [workload.dims for workload in drawn])
        assert min(workload.dims[axis.name] for workload in always) == least, axis.name
        end = far_end(problem, Scale.SIM, axis)
        largest = max(dims[axis.name] for dims in problem.train[Scale.SIM])
        assert max(sizes) >= (end[axis.name] if end else largest), axis.name
        odd = [n | 1 for n in {size // axis.multiple for size in sizes}]
        legal = any(
            problem.legal({**w.dims, axis.name: n * axis.multiple}) for w in drawn for n in odd
        )
        assert not legal or any(size // axis.multiple % 2 for size in sizes), axis.name


def _least(problem: Problem, name: str, bases: Sequence[Dims]) -> int:
    """Returns the least size of an axis that is legal beside the other sizes of some point."""
    (axis,) = (axis for axis in problem.axes if axis.name == name)
    steps = range(axis.low, max(base[name] for base in bases) + 1, axis.multiple)
    return next(n for n in steps if any(problem.legal({**base, name: n}) for base in bases))


@each_problem
def test_scalars_reach_what_the_text_says(name):
    problem = get_problem(name)
    text = _text(problem)
    ranges = {n: (float(low), float(high)) for n, _, low, high in SCALAR.findall(text)}
    choices = {n: {float(v) for v in values.split(", ")} for n, values in CHOICE.findall(text)}
    declared = {arg.name for arg in problem.declared}
    assert declared <= set(ranges) | set(choices)
    hidden = _hidden(problem)
    for arg in problem.declared:
        drawn = [float(workload.scalars[arg.name]) for workload in hidden]
        if arg.name in choices:
            assert sorted(set(drawn)) == pytest.approx(sorted(choices[arg.name]))
            continue
        low, high = ranges[arg.name]
        slack = ROUNDED * max(abs(low), abs(high))
        assert low - slack <= min(drawn) <= low + slack, arg.name
        assert high - slack <= max(drawn) <= high + slack, arg.name


@each_problem
def test_tensors_have_the_stated_dtypes_and_shapes(name):
    problem = get_problem(name)
    stated = {n: (dtype, shape) for n, dtype, shape in TENSOR.findall(_text(problem))}
    workload = adversarial_workloads(problem, Scale.SIM, "hip")[0]
    inputs = make_inputs(problem, workload, 3)
    assert list(inputs) == [arg.name for arg in problem.args]
    for arg in problem.args:
        value = inputs[arg.name]
        if not isinstance(arg, TensorArg):
            assert type(value) is arg.type, arg.name
            continue
        assert isinstance(value, torch.Tensor)
        dtype, shape = stated[arg.name]
        assert str(value.dtype) == f"torch.{dtype}"
        try:
            expected = shape_of(shape, workload.dims)
        except ValueError:  # a shape in words, which depends on values
            continue
        assert tuple(value.shape) == expected, arg.name


@each_problem
def test_layouts_are_those_that_the_rules_call_legal(name):
    problem = get_problem(name)
    assert "row strides larger than their rows" in _text(problem)
    layouts = {w.layout for w in adversarial_workloads(problem, Scale.SIM, "triton")}
    if problem.strided:
        assert layouts == set(Layout)
    assert {w.layout for w in _hidden(problem, "hip")} == {Layout.CONTIGUOUS}
