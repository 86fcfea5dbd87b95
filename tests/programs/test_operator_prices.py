"""The cost of a call of an operator, from its text."""

import json

import pytest

from kernel_gym.hardware import MI300X
from kernel_gym.programs.operator_prices import OperatorPrices

PRICES = OperatorPrices(MI300X)
RATE = MI300X.memory_bandwidth * MI300X.achievable


def tensor(*shape, dtype="float16"):
    strides = [1] * len(shape)
    for axis in range(len(shape) - 1, 0, -1):
        strides[axis - 1] = strides[axis] * shape[axis]
    return {"address": 0, "shape": list(shape), "strides": strides, "dtype": dtype}


def price(operator, overload, arguments, results):
    call = {"operator": f"aten::{operator}", "overload": overload}
    return PRICES(json.dumps(call | {"arguments": arguments, "results": results}))


def test_a_softmax_has_the_passes_of_its_rule():
    x = tensor(512, 1024)
    charge = price("_softmax", "", [x, -1, False], [x])
    moved = int(1.6 * 2 * 512 * 1024 * 2)
    assert (charge.bytes, charge.flops) == (moved, 0)
    assert charge.seconds == pytest.approx(MI300X.shortest_kernel_seconds + moved / RATE)


def test_an_rms_norm_moves_no_factors_of_rows():
    x, weight = tensor(512, 1024), tensor(1024)
    factors = tensor(512, 1, dtype="float32")
    charge = price("_fused_rms_norm", "", [x, {"list": [1024]}, weight, None], [x, factors])
    assert charge.bytes == 2 * (2 * 512 * 1024 + 1024)


def test_a_product_has_its_flops():
    a, b, c = tensor(64, 128), tensor(128, 32), tensor(64, 32)
    assert price("mm", "", [a, b], [c]).flops == 2 * 64 * 128 * 32


def test_the_size_of_a_result_may_depend_on_values():
    mask, few, many = (
        tensor(1 << 20, dtype="bool"),
        tensor(8, 1, dtype="int64"),
        tensor(1 << 20, 1, dtype="int64"),
    )
    times = [price("nonzero", "", [mask], [result]).seconds for result in (few, many)]
    assert MI300X.shortest_kernel_seconds < times[0] < times[1]


@pytest.mark.parametrize(("shape", "fused"), [((2, 4, 128, 64), True), ((4, 128, 64), False)])
def test_attention_without_a_fused_kernel_is_charged_by_its_parts(shape, fused):
    q = tensor(*shape)
    arguments = [q, q, q, None, None, True, None, False]
    charge = price("scaled_dot_product_attention", "", arguments, [])
    assert (charge.seconds > 0) == fused
    if fused:
        flops = 2 * 2 * 4 * 128 * 128 * (64 + 64) // 2
        assert (charge.bytes, charge.flops) == (4 * 2 * 4 * 128 * 64 * 2, flops)


def test_a_tensor_that_the_protocol_does_not_have_costs_a_launch():
    x = tensor(4, dtype="quint8")
    assert price("relu", "", [x], [x]).seconds == MI300X.shortest_kernel_seconds
