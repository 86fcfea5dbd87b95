"""Templates of calls: which sizes are one axis, and what fresh values keep."""

import base64

import pytest
import torch

from kernel_gym.imports.readers.base import UnsupportedTask
from kernel_gym.imports.recorded.calls import RecordedCall, TensorForm, ValueClass, parse_calls
from kernel_gym.imports.recorded.draw import ImpossibleError, draw_tensor, layout, perturbed
from kernel_gym.imports.recorded.problem import CALL, Origin, RecordedProblem, draw_inputs
from kernel_gym.imports.recorded.stated import StatedWorkload
from kernel_gym.imports.recorded.templates import CallTemplate, size_of, templates_of
from kernel_gym.tasks.problem import Check, Output
from kernel_gym.tasks.workload import Kind, Split, Workload

REAL = {"kind": "float", "mean": 0.0, "deviation": 1.0, "low": -3.0, "high": 3.0}


def tensor(*shape, dtype="float32", strides=None, **values):
    dense = [torch.empty(shape, device="meta").stride(i) for i in range(len(shape))]
    chosen = ValueClass(**(values or REAL))
    return TensorForm(shape=shape, strides=strides or dense, dtype=dtype, values=chosen)


def call(*tensors, numbers=(), **more):
    args = [{"tensor": i} for i in range(len(tensors))] + [{"number": n} for n in numbers]
    return RecordedCall(function="f", args=args, kwargs={}, tensors=list(tensors), **more)


def test_equal_sizes_are_one_axis_and_products_are_products():
    calls = [
        call(tensor(8, 16), tensor(16), tensor(128), numbers=(16,)),
        call(tensor(8, 32), tensor(32), tensor(256), numbers=(32,)),
    ]
    ((template, dims),) = templates_of(calls)
    rows, columns = template.shapes[0]
    assert template.shapes[1] == (columns,)
    assert sorted(template.shapes[2][0].split("*")) == sorted((rows, columns))
    assert template.call.args[3] == {"size": columns}
    assert dims == [{rows: 8, columns: 16}, {rows: 8, columns: 32}]
    assert size_of(template.shapes[2][0], dims[1]) == 256


def test_calls_of_another_structure_are_another_template():
    calls = [
        call(tensor(8)),
        call(tensor(8, dtype="float16")),
        call(tensor(8), numbers=(2,)),
        call(tensor(8), numbers=(3,)),
        call(tensor(4, 2)),
    ]
    assert len(templates_of(calls)) == 5


def test_real_values_have_the_widest_range_of_all_calls():
    narrow = {"kind": "float", "low": -5.0, "high": -0.5, "mean": -2.0, "deviation": 1.0}
    zeros = {"kind": "constant", "value": 0.0}
    calls = [call(tensor(8, **narrow)), call(tensor(9, **zeros)), call(tensor(10))]
    ((template, _),) = templates_of(calls)
    assert template.call.tensors[0].values == ValueClass(**REAL)
    ((template, _),) = templates_of([call(tensor(8, **zeros)), call(tensor(9, **zeros))])
    assert template.call.tensors[0].values.kind == "constant"


def test_a_template_is_read_as_it_was_written():
    ((template, _),) = templates_of([call(tensor(8, 16), numbers=(16,))])
    assert CallTemplate.from_json(template.to_json()) == template


KEPT = {"kind": "kept", "low": 0, "high": 9}


def kept(*values):
    data = base64.b64encode(torch.tensor(values, dtype=torch.int32).numpy().tobytes()).decode()
    return KEPT | {"data": data}


def linked_call(columns, *sets):
    """A call with integers that belong together, and what its tests drew with other seeds."""
    _, *others = [
        {str(k): ValueClass(**kept(*values)) for k, values in enumerate(one)} for one in sets
    ]
    forms = [tensor(len(values), dtype="int32", **kept(*values)) for values in sets[0]]
    return call(*forms, tensor(columns), variants=list(others))


def drawn_at(template, dims, seed):
    sizes = {"call": 0, **dims}
    values = draw_inputs([template], sizes, torch.Generator().manual_seed(seed), lambda _: ())
    return tuple(tuple(values[f"c0_t{k}"].tolist()) for k in range(2))


def test_integers_that_belong_together_are_those_of_one_recorded_call():
    small = [((0, 1), (1, 3)), ((0, 2), (2, 4))]
    large = [((0, 5, 1), (5, 9, 2))]
    ((template, dims),) = templates_of([linked_call(8, *small), linked_call(16, *large)])
    assert {drawn_at(template, dims[0], seed) for seed in range(16)} == set(small)
    assert {drawn_at(template, dims[1], seed) for seed in range(4)} == set(large)
    assert CallTemplate.from_json(template.to_json()) == template


def test_a_candidate_is_not_told_the_recorded_integers():
    ((template, _),) = templates_of([linked_call(8, ((0, 1), (1, 3)))])
    assert "data" in str(template.to_json())
    assert "data" not in str(template.calling())
    assert "linked" not in template.calling()


def test_the_class_of_most_integers_counts():
    few = tensor(1, dtype="int32", kind="constant", value=0)
    many = tensor(16, dtype="int32", kind="range", low=0, high=15)
    ((template, _),) = templates_of([call(few), call(many)])
    assert template.call.tensors[0].values.kind == "range"


@pytest.mark.parametrize("high", [40, 7])
def test_rows_of_distinct_integers_stay_distinct(high):
    form = tensor(64, 8, dtype="int32", kind="integers", low=0, high=high, distinct=True)
    drawn = draw_tensor(form, (64, 8), {}, torch.Generator().manual_seed(0))
    assert all(len(set(row)) == 8 for row in drawn.tolist())
    assert 0 <= int(drawn.min()) <= int(drawn.max()) <= high
    with pytest.raises(ImpossibleError, match="too few"):
        draw_tensor(form, (1, high + 2), {}, torch.Generator())


def test_indices_stay_below_the_axis_that_they_index():
    kinds = {"kind": "integers", "low": 0, "high": 16}
    ((template, dims),) = templates_of([call(tensor(17, 4), tensor(99, dtype="int64", **kinds))])
    form = template.call.tensors[1]
    small = {**dims[0], form.values.bound: 3}
    drawn = draw_tensor(form, (99,), small, torch.Generator().manual_seed(0))
    assert set(drawn.tolist()) == {0, 1, 2}


@pytest.mark.parametrize(
    ("values", "holds"),
    [
        ({"kind": "constant", "value": 2.5}, lambda t: bool((t == 2.5).all())),
        ({"kind": "empty"}, lambda t: bool(t.isnan().all())),
        (REAL | {"low": 0.0}, lambda t: bool((t >= 0).all())),
        (REAL | {"pattern": "lower"}, lambda t: torch.equal(t, torch.tril(t))),
        (REAL | {"pattern": "symmetric"}, lambda t: torch.equal(t, t.T)),
        (REAL | {"pattern": "positive"}, lambda t: bool((torch.linalg.eigvalsh(t) > 0).all())),
        (REAL | {"whole": True}, lambda t: torch.equal(t, t.round())),
        (REAL | {"minus_infinite": 0.5}, lambda t: bool(t.isneginf().any())),
        (REAL | {"nans": 0.5}, lambda t: 0 < int(t.isnan().sum()) < t.numel()),
    ],
)
def test_fresh_values_are_of_the_class(values, holds):
    form = tensor(16, 16, **values)
    assert holds(draw_tensor(form, (16, 16), {}, torch.Generator().manual_seed(1)))


def test_the_layout_is_kept():
    form = tensor(4, 8, strides=[1, 4])
    assert layout(form, (6, 10)) == (1, 6)
    assert draw_tensor(form, (6, 10), {}, torch.Generator()).stride() == (1, 6)
    gaps = tensor(4, 8, strides=[100, 1])
    assert layout(gaps, (4, 8)) == (100, 1)
    with pytest.raises(ImpossibleError, match="gaps"):
        layout(gaps, (5, 8))


def test_a_value_moves_by_one_rounding():
    form = tensor(64, dtype="float16")
    before = draw_tensor(form, (64,), {}, torch.Generator().manual_seed(0))
    after = perturbed(form, before, torch.Generator().manual_seed(0))
    moved = ((after - before).abs() / before.abs()).double()
    assert 0 < float(moved.max()) <= 2 * torch.finfo(torch.float16).eps


def test_values_of_an_expanded_axis_move_together():
    form = tensor(6, 64, strides=[0, 1])
    before = draw_tensor(form, (6, 64), {}, torch.Generator().manual_seed(0))
    after = perturbed(form, before, torch.Generator().manual_seed(0))
    assert after.stride() == (0, 1)
    assert not torch.equal(after, before)


def test_a_call_that_is_not_stated_yet_is_drawn_without_gradients():
    origin = Origin("suite", "name", "", "", "", "", ("f",))
    recorded = call(tensor(8), backward=True)
    ((template, (dims,)),) = templates_of([recorded])
    dims = {CALL: 0, **dims}
    outputs = (Output("out0", torch.float32, Check.CLOSE, "8"),)
    stated = StatedWorkload(dims, Kind.TRAIN, Split.TRAIN, outputs, exact=False)
    workload = Workload(dims, Split.TRAIN, Kind.TRAIN)
    names = [
        sorted(RecordedProblem(origin, [template], some).inputs(workload, torch.Generator()))
        for some in ((), (stated,))
    ]
    assert [name for name in names[1] if name not in names[0]] == ["of_out0"]


def test_the_largest_value_of_a_format_stays_finite():
    form = tensor(64, dtype="float8_e4m3fnuz")
    largest = torch.full((64,), torch.finfo(torch.float8_e4m3fnuz).max).to(torch.float8_e4m3fnuz)
    after = perturbed(form, largest, torch.Generator().manual_seed(0)).float()
    assert int((after != largest.float()).sum()) > 0
    assert bool(after.isfinite().all())


HOSTILE = [
    {},
    {"calls": 3},
    {"calls": [{"function": "os.system", "args": [], "kwargs": {}, "tensors": []}]},
    {"calls": [{"function": "f", "args": [], "kwargs": {}, "tensors": [{"shape": [-1]}]}]},
    {"calls": [], "ended": "well"},
    {"calls": [], "refused": ["f: an argument is a Module"]},
]


@pytest.mark.parametrize("answer", HOSTILE)
def test_a_hostile_record_is_unsupported(answer):
    with pytest.raises(UnsupportedTask):
        parse_calls(answer)
