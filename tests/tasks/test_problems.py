"""Each problem's oracle against a formula written apart from it, and its stated costs."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

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

SMALL = {
    "add_rms_norm": {"rows": 5, "cols": 33},
    "causal_attention": {"batch": 2, "heads": 2, "seq": 9, "head_dim": 64},
    "cross_entropy": {"rows": 12, "vocab": 17},
    "cumsum": {"rows": 3, "cols": 40},
    "gelu": {"rows": 4, "cols": 31},
    "layer_norm": {"rows": 5, "cols": 33},
    "matmul": {"m": 7, "n": 5, "k": 11},
    "rope": {"tokens": 3, "heads": 2, "head_dim": 16},
    "row_argmax": {"rows": 6, "cols": 29},
    "softmax": {"rows": 4, "cols": 21},
    "swiglu": {"rows": 3, "cols": 13},
    "transpose": {"rows": 6, "cols": 4},
}

Arrays = dict[str, np.ndarray]


def _softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _add_rms_norm(x, residual, weight, eps):
    h = x + residual
    return h / np.sqrt((h * h).sum(1, keepdims=True) / h.shape[1] + eps) * weight, h


def _attention(q, k, v, scale):
    out = np.zeros_like(q)
    for index in np.ndindex(q.shape[:3]):
        b, h, i = index
        weights = _softmax(k[b, h, : i + 1] @ q[b, h, i] * scale)
        out[index] = weights @ v[b, h, : i + 1]
    return (out,)


def _cross_entropy(logits, target, ignore_index):
    def loss(row, t):
        top = max(row)
        return top + math.log(math.fsum(math.exp(x - top) for x in row)) - row[int(t)]

    rows = zip(logits, target, strict=True)
    return (np.array([0.0 if t == ignore_index else loss(row, t) for row, t in rows]),)


def _cumsum(x):
    return (np.array([[math.fsum(row[: j + 1]) for j in range(len(row))] for row in x]),)


def _gelu(x):
    return (0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))),)


def _layer_norm(x, weight, bias, eps):
    return (
        (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + eps) * weight + bias,
    )


def _rope(x, cos, sin):
    half = x.shape[-1] // 2
    pair = x[..., :half] + 1j * x[..., half:]
    turned = pair * (cos + 1j * sin)[:, None, :]
    return (np.concatenate([turned.real, turned.imag], axis=-1),)


def _swiglu(x):
    half = x.shape[1] // 2
    with np.errstate(over="ignore"):
        return (x[:, :half] / (1 + np.exp(-x[:, :half])) * x[:, half:],)


FORMULAS: dict[str, Callable[..., tuple[np.ndarray, ...]]] = {
    "add_rms_norm": _add_rms_norm,
    "causal_attention": _attention,
    "cross_entropy": _cross_entropy,
    "cumsum": _cumsum,
    "gelu": _gelu,
    "layer_norm": _layer_norm,
    "matmul": lambda a, b: (np.einsum("ik,kj->ij", a, b),),
    "rope": _rope,
    "row_argmax": lambda x: (x.max(1), x.argmax(1)),
    "softmax": lambda x: (_softmax(x),),
    "swiglu": _swiglu,
    "transpose": lambda x: (np.stack(list(x), axis=1),),
}


def _workload(name: str, distribution: str = "normal") -> Workload:
    return Workload(SMALL[name], Split.TRAIN, Kind.TRAIN, distribution=distribution)


def _fp64(value):
    wide = isinstance(value, torch.Tensor) and value.is_floating_point()
    return value.double() if wide else value


def _array(value):
    return value.numpy() if isinstance(value, torch.Tensor) else value


def test_every_problem_is_covered():
    assert problem_names() == sorted(SMALL) == sorted(FORMULAS)


@pytest.mark.parametrize("name", SMALL)
def test_oracle_agrees_with_an_independent_formula(name):
    problem = get_problem(name)
    for distribution in problem.distributions:
        if distribution == "range_ends":
            continue  # the numpy formulas would overflow where the oracle does not
        inputs = make_inputs(problem, _workload(name, distribution), seed=3)
        wide = {key: _fp64(value) for key, value in inputs.items()}
        expected = FORMULAS[name](**{key: _array(value) for key, value in wide.items()})
        found = problem.oracle(**wide)
        assert len(found) == len(expected) == len(problem.outputs)
        for output, ours, theirs in zip(problem.outputs, found, expected, strict=True):
            if output.check is not Check.CUSTOM:
                np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", SMALL)
def test_reference_is_close_to_the_oracle_and_has_the_stated_form(name):
    problem = get_problem(name)
    for distribution in problem.distributions:
        workload = _workload(name, distribution)
        inputs = make_inputs(problem, workload, seed=5)
        exact = problem.oracle(**{key: _fp64(value) for key, value in inputs.items()})
        shapes = problem.output_shapes(workload.dims)
        found = problem.reference(**inputs)
        assert list(shapes) == [output.name for output in problem.outputs]
        for output, ours, truth in zip(problem.outputs, found, exact, strict=True):
            assert tuple(ours.shape) == shapes[output.name]
            assert ours.dtype == output.dtype
            if output.check is Check.CLOSE:
                unit = torch.finfo(output.dtype).eps
                error = (ours.double() - truth).abs().max()
                assert error <= 8 * unit * truth.abs().max() + 1e-7, (distribution, output.name)
            elif output.check is Check.EXACT:
                assert torch.equal(ours, truth.to(output.dtype))


@pytest.mark.parametrize("name", SMALL)
def test_oracle_does_not_need_converted_inputs(name):
    problem = get_problem(name)
    inputs = make_inputs(problem, _workload(name), seed=1)
    raw = problem.oracle(**inputs)
    wide = problem.oracle(**{key: _fp64(value) for key, value in inputs.items()})
    for left, right in zip(raw, wide, strict=True):
        assert torch.equal(left, right)
        assert left.dtype in (torch.float64, torch.int64)


@pytest.mark.parametrize("name", SMALL)
def test_bytes_are_those_of_the_arguments_and_outputs(name):
    problem = get_problem(name)
    workload = _workload(name)
    inputs = make_inputs(problem, workload, seed=0)
    read = sum(v.numel() * v.element_size() for v in inputs.values() if isinstance(v, torch.Tensor))
    shapes = problem.output_shapes(workload.dims)
    written = sum(math.prod(shapes[out.name]) * out.dtype.itemsize for out in problem.outputs)
    assert problem.bytes(workload.dims) == read + written


@pytest.mark.parametrize(
    ("name", "dims", "flops"),
    [
        ("matmul", {"m": 2, "n": 3, "k": 4}, 48),
        ("causal_attention", {"batch": 1, "heads": 1, "seq": 2, "head_dim": 64}, 4 * 64 * 3),
        ("cumsum", {"rows": 2, "cols": 5}, 10),
        ("transpose", {"rows": 2, "cols": 5}, 0),
        ("softmax", {"rows": 2, "cols": 5}, 50),
    ],
)
def test_flops_of_small_cases(name, dims, flops):
    assert get_problem(name).flops(dims) == flops


@pytest.mark.parametrize("name", SMALL)
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
@pytest.mark.parametrize("name", SMALL)
def test_train_workloads_go_through_every_distribution(name, scale):
    problem = get_problem(name)
    workloads = train_workloads(problem, scale)
    assert {w.distribution for w in workloads} == set(problem.distributions)
    assert len({w.key for w in workloads}) == len(workloads) == len(problem.train[scale])


def test_sizes_of_the_simulator_fit_a_laptop():
    for name in problem_names():
        problem = get_problem(name)
        for dims in problem.train[Scale.SIM]:
            assert 10_000 <= problem.bytes(dims) <= 8_000_000, (name, dims)
            assert problem.flops(dims) <= 150_000_000, (name, dims)


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
