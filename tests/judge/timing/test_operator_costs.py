"""The cost of PyTorch's operators beyond one pass over their tensors."""

from __future__ import annotations

import pytest
import torch

from kernel_gym.hardware import MI300X
from kernel_gym.judge.timing.operator_costs import OperatorCost, operator_cost

aten = torch.ops.aten


def cost(overload, *args, **kwargs):
    meta = [a.to("meta") if isinstance(a, torch.Tensor) else a for a in args]
    out = overload(*meta, **kwargs)
    units = MI300X.compute_units
    return operator_cost(overload.overloadpacket, tuple(meta), kwargs, out, units)


def test_a_pointwise_operator_is_one_pass():
    assert cost(aten.exp.default, torch.zeros(8)) == OperatorCost()


def test_a_gather_moves_what_it_returns_and_not_the_table():
    table, rows = torch.zeros(10_000, 64), torch.zeros(16, dtype=torch.int64)
    assert cost(aten.index_select.default, table, 0, rows).moved == 2 * 16 * 64 * 4


@pytest.mark.parametrize(
    ("shape", "dims", "passes"), [((64, 64), (0, 1), 1.0), ((64, 64), (1, 0), 3.0)]
)
def test_a_copy_between_layouts_costs_more(shape, dims, passes):
    x = torch.zeros(shape).permute(dims)
    assert cost(aten.clone.default, x).passes == passes


def test_a_reduction_of_short_rows_costs_more():
    long, short = torch.zeros(64, 4096), torch.zeros(4096, 64)
    assert cost(aten.sum.dim_IntList, long, [1]).passes == 1.6
    assert cost(aten.sum.dim_IntList, short, [1]).passes == 3.0


def test_long_rows_are_sorted_by_several_kernels():
    assert cost(aten.sort.default, torch.zeros(4, 4096)).launches == 1
    assert cost(aten.sort.default, torch.zeros(4, 8192)).launches == 8


def test_selection_costs_by_rows():
    few, many = (cost(aten.topk.default, torch.zeros(n, 256), 8).waiting for n in (1000, 101_000))
    assert many - few == pytest.approx(1.2e-3)


def test_solvers_go_through_the_columns_of_as_many_matrices_as_fit():
    fits = 8 * MI300X.compute_units
    one, all_at_once, two_turns = (
        cost(aten.linalg_cholesky_ex.default, torch.zeros(n, 32, 32)).waiting
        for n in (1, fits, fits + 1)
    )
    assert one == all_at_once == pytest.approx(32e-6)
    assert two_turns == pytest.approx(64e-6)


def test_distances_cost_by_their_number():
    p = torch.zeros(2, 128, 3)
    assert cost(aten._cdist_forward.default, p, p, 2.0, 2).waiting == pytest.approx(
        2 * 128 * 128 * 1.2e-9
    )


def test_the_ctc_loss_costs_by_its_time_steps():
    losses = (torch.zeros(4), torch.zeros(4, 100, 41))
    args = (torch.zeros(100, 4, 32), torch.zeros(4, 20, dtype=torch.int64), [100] * 4, [20] * 4)
    loss = operator_cost(aten._ctc_loss, args, {}, losses, MI300X.compute_units)
    assert loss.waiting == pytest.approx(28e-6)


def test_a_depthwise_convolution_is_no_product():
    x, dense, own = torch.zeros(1, 16, 8, 8), torch.zeros(16, 16, 3, 3), torch.zeros(16, 1, 3, 3)
    rest = ([1, 1], [0, 0], [1, 1], False, [0, 0])
    assert cost(aten.convolution.default, x, dense, None, *rest, 1).passes == 2.0
    assert cost(aten.convolution.default, x, own, None, *rest, 16).passes == 8.0
