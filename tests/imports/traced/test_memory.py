"""A graph that asks for terabytes is refused by name, before anything is reserved."""

import pytest
import torch

from kernel_gym.imports.authoring.request import TracingRequest
from kernel_gym.imports.authoring.tracer import CodeError
from kernel_gym.imports.authoring.write import trace_problem
from kernel_gym.imports.traced.memory import BoundedMemory, TooMuchMemory


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.zeros(1 << 40),
        lambda: torch.ops.aten.full.default([1 << 20, 1 << 20], 1.0),
        lambda: torch.ones(1 << 20).repeat(1 << 20),
        lambda: torch.ones(1 << 20, 1) + torch.ones(1, 1 << 20),
        lambda: torch.ones(1 << 20, 1) @ torch.ones(1, 1 << 20),
    ],
)
def test_an_operator_with_a_huge_result_does_not_run(call):
    with BoundedMemory(), pytest.raises(TooMuchMemory, match="needs 4,398,046,511,104 bytes"):
        call()


def test_results_that_are_kept_count_and_others_do_not():
    size = 1 << 20
    with BoundedMemory(4 * size) as bound:
        for _ in range(10):
            torch.zeros(size, dtype=torch.uint8)
        kept = [torch.zeros(size, dtype=torch.uint8) for _ in range(4)]
        with pytest.raises(TooMuchMemory, match=r"aten\.zeros"):
            torch.zeros(size, dtype=torch.uint8)
        views = [one.view(-1)[::2] for one in kept]
        views[0].add_(1)
        assert bound is not None


def test_values_are_those_without_a_bound():
    x = torch.randn(8, 4)
    with BoundedMemory():
        y = torch.nn.functional.layer_norm(x, (4,)).nonzero()
    assert torch.equal(y, torch.nn.functional.layer_norm(x, (4,)).nonzero())


CODE = """
import torch

rows = 64


def make():
    return torch.randn(rows) + torch.zeros(1 << 36, 8).sum(1)[:rows]


def make_small():
    return torch.randn(rows)


def double(x):
    return x * 2


def hold(x):
    return x + x.new_empty(1 << 39)[:1] * 0
"""


@pytest.mark.parametrize(
    ("function", "maker", "found"),
    [
        ("double", "make", "you tried to allocate 2199023255552 bytes"),  # in its own process
        ("hold", "make_small", "aten.new_empty.default needs"),
    ],
)
def test_a_module_that_asks_for_terabytes_is_no_problem(function, maker, found):
    request = TracingRequest({"m.py": CODE}, f"m.py:{function}", f"m.py:{maker}")
    with pytest.raises(CodeError) as caught:
        trace_problem(request, "huge", "a test")
    assert found in str(caught.value)
