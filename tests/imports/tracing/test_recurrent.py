"""Recurrent layers are traced by their shapes where they are one operator, else step by step."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from kernel_gym.imports.tracing.recurrent import one_step_only

STEPS = 1_000_000
"""Steps that would take an hour, were each of them run."""


def trace(layer, x, pre_dispatch):
    """Traces a layer on fake tensors."""
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        x = mode.from_tensor(x)
    with mode, torch.no_grad(), one_step_only():
        return make_fx(lambda x: layer(x), pre_dispatch=pre_dispatch)(x)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("batch_first", [False, True])
def test_a_million_steps_are_one_operator(kind, batch_first):
    layer = getattr(torch.nn, kind)(2, 3, 2, batch_first=batch_first, bidirectional=True)
    shape = (1, STEPS) if batch_first else (STEPS, 1)
    graph = trace(layer, torch.empty(*shape, 2), pre_dispatch=True)
    out, states = next(n for n in graph.graph.nodes if n.op == "output").args[0]
    assert out.meta["val"].shape == (*shape, 6)
    leaves = states if isinstance(states, list | tuple) else [states]
    assert {tuple(one.meta["val"].shape) for one in leaves} == {(4, 1, 3)}


def test_each_step_is_recorded_where_the_trace_goes_into_the_operator():
    layer, x = torch.nn.GRU(2, 3), torch.randn(5, 4, 2)
    graph = trace(layer, x, pre_dispatch=False)
    operators = [str(n.target) for n in graph.graph.nodes]
    assert not any("gru" in name for name in operators)
    assert sum("sigmoid" in name for name in operators) >= 5


def test_layers_compute_all_steps_on_real_tensors():
    layer, x = torch.nn.LSTM(2, 3), torch.randn(5, 4, 2)
    with torch.no_grad():
        expected = layer(x)[0]
        with one_step_only():
            torch.testing.assert_close(layer(x)[0], expected)
        torch.testing.assert_close(layer(x)[0], expected)
