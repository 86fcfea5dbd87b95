"""The cost of PyTorch's operators beyond one pass over their tensors."""

from __future__ import annotations

import pytest
import torch

from kernel_gym.devices.operator_costs import OperatorCost, operator_cost
from kernel_gym.hardware import MI300X

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


def test_long_rows_are_sorted_by_more_kernels_than_rows_of_a_workgroup():
    short, row, long = (cost(aten.sort.default, torch.zeros(4, n)) for n in (64, 4096, 8192))
    assert long.launches > row.launches == short.launches
    assert short.waiting < row.waiting


def test_selection_costs_by_rows():
    few, many = (cost(aten.topk.default, torch.zeros(n, 256), 8).waiting for n in (1000, 101_000))
    assert many - few == pytest.approx(1.2e-3)


def test_solvers_go_through_the_columns_of_as_many_matrices_as_fit():
    fits = 3 * MI300X.compute_units
    one, all_at_once, two_turns = (
        cost(aten.linalg_cholesky_ex.default, torch.zeros(n, 32, 32)).waiting
        for n in (1, fits, fits + 1)
    )
    assert one == all_at_once == pytest.approx(32 * 0.45e-6)
    assert two_turns == pytest.approx(2 * one)


def test_a_triangular_solver_has_a_workgroup_for_64_right_hand_sides():
    def waiting(matrices, rights):
        a, b = torch.zeros(matrices, 64, 64), torch.zeros(matrices, 64, rights)
        return cost(aten.linalg_solve_triangular.default, a, b, upper=False).waiting

    fits = 2 * MI300X.compute_units
    assert waiting(1, 64) == waiting(fits, 64) == pytest.approx(64 * 0.3e-6)
    assert waiting(fits, 65) == pytest.approx(2 * waiting(fits, 64))


def test_distances_cost_by_their_number():
    p = torch.zeros(2, 128, 3)
    assert cost(aten._cdist_forward.default, p, p, 2.0, 2).waiting == pytest.approx(
        2 * 128 * 128 * 1.2e-9
    )


def test_the_ctc_loss_costs_by_its_time_steps():
    losses = (torch.zeros(4), torch.zeros(4, 100, 41))
    args = (torch.zeros(100, 4, 32), torch.zeros(4, 20, dtype=torch.int64), [100] * 4, [20] * 4)
    loss = operator_cost(aten._ctc_loss, args, {}, losses, MI300X.compute_units)
    assert loss.waiting == pytest.approx(35e-6)


def convolution(x, weight, bias=None, groups=1):
    flat = weight.ndim - 2
    rest = ([1] * flat, [0] * flat, [1] * flat, False, [0] * flat)
    return cost(aten.convolution.default, x, weight, bias, *rest, groups)


def test_a_depthwise_convolution_is_no_product():
    x, dense, own = torch.zeros(1, 16, 8, 8), torch.zeros(16, 16, 3, 3), torch.zeros(16, 1, 3, 3)
    assert convolution(x, dense).passes == 2.0
    assert convolution(x, own, groups=16).passes == 8.0


@pytest.mark.parametrize(
    ("shape", "weight", "bias", "groups", "counted"),  # kernels on an H200, by the profiler
    [
        ((1, 32, 28, 28), (32, 32, 3, 3), True, 1, 5),
        ((2, 16, 300), (160, 16, 3), True, 1, 5),
        ((1, 16, 4, 14, 14), (16, 16, 3, 3, 3), True, 1, 5),
        ((1, 64, 28, 28), (64, 4, 3, 3), False, 16, 1),
        ((1, 12, 56, 56), (12, 1, 7, 7), True, 12, 1),
        ((1, 96, 2048), (96, 1, 4), True, 96, 2),
    ],
)
def test_a_convolution_launches_as_many_kernels_as_were_counted(
    shape, weight, bias, groups, counted
):
    filters = torch.zeros(weight[0]) if bias else None
    call = convolution(torch.zeros(shape), torch.zeros(weight), filters, groups)
    assert call.launches == counted


def test_a_convolution_of_few_channels_goes_through_its_window():
    image, filters = torch.zeros(1, 3, 112, 112), torch.zeros(512, 3, 16, 16)
    assert convolution(image, filters).waiting == pytest.approx(3 * 16 * 16 * 0.08e-6)
    assert convolution(torch.zeros(1, 8, 112, 112), torch.zeros(512, 8, 16, 16)).waiting == 0


def test_a_bag_is_added_row_by_row_and_the_table_is_not_read_as_a_whole():
    table, offsets = torch.zeros(10_000, 128), torch.arange(0, 1280, 20)
    ids = torch.zeros(1280, dtype=torch.int64)
    args = (table, ids, offsets)
    out = (torch.zeros(64, 128),)
    bag = operator_cost(aten._embedding_bag_forward_only, args, {}, out, MI300X.compute_units)
    assert bag.waiting == pytest.approx(20 * 0.8e-6)
    assert bag.moved == (1280 + 64) * 128 * 4


def test_a_row_is_scanned_by_one_workgroup_unless_it_is_the_only_one():
    row, rows = torch.zeros(65_536), torch.zeros(2, 65_536)
    assert cost(aten.cumsum.default, rows, 1).waiting == pytest.approx(65_536 * 2e-9)
    assert cost(aten.cumsum.default, row, 0).waiting == 0
    assert cost(aten.cummax.default, row, 0).waiting == pytest.approx(65_536 * 2e-9)


def test_gradients_of_few_tokens_go_into_the_table_one_by_one():
    def waiting(tokens):
        rows = torch.zeros(tokens, 64)
        ids = torch.zeros(tokens, dtype=torch.int64)
        return cost(aten.embedding_dense_backward.default, rows, ids, 500, -1, False).waiting

    assert waiting(512) == pytest.approx(512 * 25e-9)
    assert waiting(4096) == 0
