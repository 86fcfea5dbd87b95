"""Operators of packages: shapes for tracing, for every problem that can be an operator."""

from __future__ import annotations

import importlib
import sys

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from kernel_gym.packages.evidence import PackageError
from kernel_gym.packages.operator import operator_facts
from kernel_gym.tasks import Scale, get_problem, make_inputs, problem_names, train_workloads

NO_OPERATOR = {
    "adamw_step": "sizes",
    "grad_norm_clip": "sizes",
    "kv_cache_write": "writes to k_cache, v_cache",
    "lion_step": "sizes",
    "rmsprop_step": "sizes",
    "sgd_momentum_step": "writes to param, velocity",
    "timestep_embedding": "sizes",
    "window_attention": "sizes",
}
"""Problems that are no operator in one of the languages, by a part of the reason."""


@pytest.mark.parametrize("name", sorted(set(problem_names()) - NO_OPERATOR.keys()))
@pytest.mark.parametrize("language", ["triton", "hip"])
def test_shapes_for_tracing_are_those_of_the_problem(name, language):
    problem = get_problem(name)
    facts = operator_facts(problem, language)
    workload = min(
        train_workloads(problem, Scale.SIM), key=lambda load: problem.elements(load.dims)
    )
    inputs = make_inputs(problem, workload, 0)
    sizes = {size: _value(text, inputs) for size, text in facts.sizes}
    shapes = problem.output_shapes(workload.dims)
    for output, made in zip(problem.outputs, facts.outputs, strict=True):
        shape = eval(f"({made.shape},)", {}, {**inputs, **sizes})
        assert shape == shapes[output.name], made
        assert made.dtype == str(output.dtype)
    for axis, text in facts.axes:
        assert _value(text, inputs) == workload.dims[axis]
    for name, shape in zip(facts.tensors, facts.shapes, strict=True):
        assert shape is None or _value(f"({shape})", inputs) == tuple(inputs[name].shape), shape


def _value(text, inputs):
    return eval(text, {}, inputs)


@pytest.mark.parametrize("name", NO_OPERATOR)
def test_what_is_no_operator_is_refused_by_name(name):
    problem = get_problem(name)
    with pytest.raises(PackageError, match=NO_OPERATOR[name]):
        assert [operator_facts(problem, language) for language in ("triton", "hip")]


def test_an_operator_traces_and_has_the_gradient_of_plain_pytorch(package, monkeypatch):
    monkeypatch.syspath_prepend(str(package / "built"))
    module = importlib.import_module("gpu_kernel_add_rms_norm")
    x, residual = (torch.randn(4, 8).half().requires_grad_() for _ in range(2))
    weight = torch.ones(8).half().requires_grad_()
    compiled = torch.compile(
        lambda *call: module.add_rms_norm(*call, 1e-5)[0], fullgraph=True, backend="aot_eager"
    )
    compiled(x, residual, weight).float().sum().backward()
    gradients = [t.grad.clone() for t in (x, residual, weight)]
    for t in (x, residual, weight):
        t.grad = None
    module.reference(x, residual, weight, 1e-5)[0].float().sum().backward()
    assert all(
        torch.equal(g, t.grad) for g, t in zip(gradients, (x, residual, weight), strict=True)
    )
    with FakeTensorMode():
        fake = [torch.empty(size, dtype=torch.float16) for size in ((4, 8), (4, 8), (8,))]
        out, total = module.add_rms_norm(*fake, 1e-5)
        with pytest.raises(TypeError, match=r"weight is torch\.bfloat16, expected torch\.float16"):
            module.add_rms_norm(*fake[:2], fake[2].bfloat16(), 1e-5)
    assert out.shape == total.shape == (4, 8)
    with pytest.raises(TypeError, match=r"x is torch\.float32, expected torch\.float16"):
        module.add_rms_norm(x.float(), residual, weight, 1e-5)
    assert "cpu" in module.reason(x, residual, weight, 1e-5)
    sys.modules.pop("gpu_kernel_add_rms_norm")
