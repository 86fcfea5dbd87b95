"""Calls of packages without PyTorch's dispatcher, and answers that are remembered."""

from __future__ import annotations

import importlib
import sys

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from kernel_gym.packages.template import direct


@pytest.fixture
def module(package, monkeypatch):
    """A package's module, imported plainly."""
    monkeypatch.syspath_prepend(str(package / "built"))
    yield importlib.import_module("gpu_kernel_add_rms_norm")
    sys.modules.pop("gpu_kernel_add_rms_norm")


def _arguments(rows=4, **options):
    torch.manual_seed(rows)
    x, residual = (torch.randn(rows, 8, **options).half() for _ in range(2))
    return x, residual, torch.randn(8, **options).half(), 1e-5


def test_a_direct_call_is_the_operator(module):
    arguments = _arguments()
    direct_outputs, expected = module.call(*arguments), module.add_rms_norm(*arguments)
    assert all(torch.equal(a, b) for a, b in zip(direct_outputs, expected, strict=True))
    given = {tensor.untyped_storage().data_ptr() for tensor in arguments[:3]}
    assert not given & {tensor.untyped_storage().data_ptr() for tensor in direct_outputs}


def test_a_call_whose_gradient_is_needed_has_it(module):
    x, residual, weight, eps = _arguments()
    weight.requires_grad_()
    module.call(x, residual, weight, eps)[0].float().sum().backward()
    assert weight.grad.abs().sum() > 0
    with torch.no_grad():
        assert not module.call(x, residual, weight, eps)[0].requires_grad


def test_a_compiled_layer_calls_the_operator(module):
    graphs = []

    def backend(graph, _):
        graphs.append([node.target for node in graph.graph.nodes])
        return graph

    compiled = torch.compile(lambda *call: module.call(*call)[0], fullgraph=True, backend=backend)
    with torch.no_grad():
        compiled(*_arguments())
    (targets,) = graphs
    assert any("add_rms_norm" in str(target) for target in targets)


def test_a_traced_call_is_not_direct():
    plain = torch.ones(2)
    assert direct.possible([plain])
    with FakeTensorMode():
        assert not direct.possible([torch.empty(2)])
        assert not direct.possible([plain])
    assert not direct.possible([plain.clone().requires_grad_()])


def test_answers_are_those_of_each_type_shape_layout_and_number():
    asked = []

    @direct.remembered
    def describe(tensor, number):
        asked.append(1)
        return f"{tensor.dtype} {tuple(tensor.shape)} {tensor.is_contiguous()} {number!r}"

    plain = torch.zeros(4, 4)
    others = [plain[:2], plain.half(), plain.t()[:, :3], plain.to("meta")]
    calls = [(t, n) for t in (plain, *others) for n in (1, 1.0, True, 2)]
    first = [describe(*call) for call in calls]
    assert [describe(*call) for call in calls] == first
    assert first == [describe.__wrapped__(*call) for call in calls]
    assert len(asked) == 2 * len(calls)


def test_what_no_key_describes_is_asked_each_time():
    asked = []

    @direct.remembered
    def describe(value):
        asked.append(value)
        return ""

    for value in (torch.eye(2).to_sparse(), None, "text", [1]):
        describe(value)
        describe(value)
    assert len(asked) == 8


def test_no_more_answers_are_kept_than_stated(monkeypatch):
    monkeypatch.setattr(direct, "MAX_ANSWERS", 3)
    asked = []

    @direct.remembered
    def describe(number):
        asked.append(number)
        return str(number)

    assert [describe(n) for n in range(7)] == [str(n) for n in range(7)]
    assert describe(0) == "0"
    assert asked == [*range(7), 0]
