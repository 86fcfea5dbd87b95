"""Plans of hostile processes: read as they were written, or refused by name."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernel_gym.plans import limits
from kernel_gym.plans.addresses import STAND_IN_BASE
from kernel_gym.plans.parse import parse_plan
from kernel_gym.plans.reading import BadPlanError
from kernel_gym.plans.types import (
    ELEMENT_BYTES,
    BufferReference,
    BufferRole,
    BufferView,
    CodeForm,
    CopyStep,
    FillStep,
    LaunchStep,
    PlanArgument,
    PlanBuffer,
    PlanCode,
    PlanKernel,
    UploadStep,
)
from kernel_gym.plans.write import write_plan
from kernel_gym.protocol.fields import ELEMENT_TYPES
from tests.plans.plans import PLAN, VIEW, plans

HOSTILE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-2, 5)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["launch", "fill", "input", "float32", "cubin", "00", "\ud800", 1 << 70]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=8,
)
SLOW = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)


def read_back(plan):
    header, codes, constants = write_plan(plan)
    return parse_plan(json.loads(json.dumps(header)), codes, constants)


def read_or_refuse(header, codes, constants):
    """Returns the plan; None if it is refused by a short line. Nothing else may be raised."""
    try:
        return parse_plan(header, codes, constants)
    except BadPlanError as error:
        text = str(error)
    assert text.isprintable()
    assert len(text) < 1000
    return None


def refusal(plan) -> str:
    with pytest.raises(BadPlanError) as caught:
        read_back(plan)
    return str(caught.value)


def places(value, path=()):
    """Yields the path of each value in a JSON tree."""
    yield path
    items = {}
    if isinstance(value, dict | list):
        items = value if isinstance(value, dict) else dict(enumerate(value))
    for key, inner in items.items():
        yield from places(inner, (*path, key))


def changed(header, path, value):
    if not path:
        return value
    header = copy.deepcopy(header)
    inner = header
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return header


def test_a_plan_is_read_as_it_was_written():
    assert read_back(PLAN) == PLAN


@SLOW
@given(plans())
def test_every_plan_is_read_as_it_was_written(plan):
    assert read_back(plan) == plan


@SLOW
@given(HOSTILE, st.binary(max_size=8), st.binary(max_size=8))
def test_any_json_is_refused_by_name(header, codes, constants):
    with pytest.raises(BadPlanError) as caught:
        parse_plan(header, codes, constants)
    assert str(caught.value).isprintable()


@SLOW
@given(plans(), st.data())
def test_a_plan_with_any_value_in_any_place_is_refused_by_name_or_read(plan, data):
    header, codes, constants = write_plan(plan)
    path = data.draw(st.sampled_from(sorted(places(header), key=str)))
    header = changed(header, path, data.draw(HOSTILE))
    plan = read_or_refuse(header, codes, constants)
    assert plan is None or read_back(plan) == plan


@pytest.mark.parametrize("number", range(len(list(places(write_plan(PLAN)[0])))))
def test_each_part_of_a_plan_is_needed(number):
    header, codes, constants = write_plan(PLAN)
    path = list(places(header))[number]
    for odd in (-1, 1 << 70, 0.5, True, "x" * 10000, {"a": 1}, [[]] * 20000):
        with pytest.raises(BadPlanError):
            parse_plan(changed(header, path, odd), codes, constants)


def test_bytes_that_no_part_takes_are_refused():
    header, codes, constants = write_plan(PLAN)
    for wrong in ((codes + b"x", constants), (codes[:-1], constants), (codes, constants + b"x")):
        with pytest.raises(BadPlanError, match="bytes of"):
            parse_plan(header, *wrong)


def test_elements_have_the_sizes_of_pytorch():
    assert {name: dtype.itemsize for name, dtype in ELEMENT_TYPES.items()} == ELEMENT_BYTES


def with_step(step):
    return replace(PLAN, steps=(step, *PLAN.steps[1:]))


def with_buffer(buffer):
    return replace(PLAN, buffers=(*PLAN.buffers, buffer))


def launched(**changes):
    return with_step(replace(PLAN.steps[2], **changes))


def with_argument(data, *references):
    return launched(arguments=(PlanArgument(data, references),))


ADDRESS = (STAND_IN_BASE + 5).to_bytes(8, "little")
SCRATCH = BufferRole.SCRATCH
WRONG = {
    "is number 9 of": [
        replace(PLAN, kernels=(PlanKernel(9, "add"),)),
        launched(kernel=9),
        with_step(FillStep(replace(VIEW, buffer=9), bytes(4))),
        with_argument(bytes(8), BufferReference(0, 9, 0)),
        with_buffer(PlanBuffer(BufferRole.VARIABLE, 8, code=9, symbol="x")),
        replace(PLAN, outputs=(replace(VIEW, buffer=9),)),
    ],
    "is not allocated then": [
        with_step(FillStep(replace(VIEW, buffer=2, offset=0), bytes(4))),
        with_argument(bytes(8), BufferReference(0, 2, 0)),
        replace(PLAN, outputs=(BufferView(2, 0, (1,), (1,), "int8"),)),
        with_step(UploadStep(2, 0, b"x")),
    ],
    "takes .* bytes from": [
        with_step(FillStep(replace(VIEW, offset=40), bytes(4))),
        with_step(CopyStep(replace(VIEW, strides=(1 << 35, 1)), VIEW)),
        replace(PLAN, outputs=(replace(VIEW, offset=64, shape=(1, 1)),)),
        replace(PLAN, outputs=(BufferView(0, 0, (1 << 35, 4), (0, 1), "int8"),)),
    ],
    "does not lie within": [with_step(UploadStep(1, 63, b"xy"))],
    "points to byte 65": [
        with_argument(bytes(8), BufferReference(0, 0, 65)),
        with_step(UploadStep(1, 0, bytes(8), (BufferReference(0, 0, 65),))),
    ],
    "no room for an address": [
        with_argument(bytes(8), BufferReference(8, 0, 0)),
        with_argument(bytes(12), BufferReference(4, 0, 0)),
        with_argument(bytes(15), BufferReference(8, 0, 0)),
        with_argument(b"1" + bytes(7), BufferReference(0, 0, 0)),
        with_argument(bytes(16), BufferReference(8, 0, 0), BufferReference(0, 0, 0)),
        with_argument(bytes(16), BufferReference(0, 0, 0), BufferReference(0, 0, 0)),
    ],
    "holds an address": [
        with_argument(ADDRESS),
        with_argument(b"abc" + ADDRESS),
        with_step(UploadStep(1, 0, ADDRESS)),
    ],
    "is argument 0 again": [with_buffer(PlanBuffer(BufferRole.OUTPUT, 8))],
    "lives from step": [
        with_buffer(PlanBuffer(SCRATCH, 8, begin=5)),
        with_buffer(PlanBuffer(SCRATCH, 8, begin=2, end=1)),
        with_buffer(PlanBuffer(SCRATCH, 8, end=5)),
    ],
    "lives as long as the call": [with_buffer(PlanBuffer(BufferRole.INPUT, 8, 1, end=1))],
    "with code": [
        with_buffer(PlanBuffer(SCRATCH, 8, code=0)),
        with_buffer(PlanBuffer(BufferRole.VARIABLE, 8, code=0)),
        with_buffer(PlanBuffer(BufferRole.VARIABLE, 8, symbol="x")),
    ],
    "bytes of buffers": [with_buffer(PlanBuffer(SCRATCH, limits.MAX_MEMORY_BYTES))],
    "has the grid": [launched(grid=(1 << 16, 1 << 16, 1))],
    "threads in a block": [launched(block=(1024, 2, 1))],
    "arguments of": [launched(arguments=(PlanArgument(bytes(limits.MAX_ARGUMENTS_BYTES)),) * 2)],
    "fills float32 by other elements": [with_step(FillStep(VIEW, bytes(2)))],
    "of different form": [
        with_step(CopyStep(replace(VIEW, dtype="int32"), VIEW)),
        with_step(CopyStep(replace(VIEW, shape=(1, 4)), VIEW)),
    ],
    "share memory": [
        with_step(FillStep(replace(VIEW, strides=(0, 1)), bytes(4))),
        with_step(CopyStep(VIEW, replace(VIEW, strides=(0, 1)))),
    ],
    "axes": [with_step(FillStep(replace(VIEW, strides=(1,)), bytes(4)))],
    "the size of codes": [
        replace(PLAN, codes=(PlanCode(CodeForm.CUBIN, bytes(limits.MAX_CODE_BYTES + 1)),)),
    ],
    "printable": [replace(PLAN, arch="gfx\n"), replace(PLAN, kernels=(PlanKernel(0, "\ud800"),))],
    "expected a list of at most": [replace(PLAN, steps=PLAN.steps * limits.MAX_STEPS)],
}


@pytest.mark.parametrize(
    ("message", "plan"), [(message, plan) for message in WRONG for plan in WRONG[message]]
)
def test_what_is_wrong_is_refused_by_name(message, plan):
    with pytest.raises(BadPlanError, match=message):
        read_back(plan)


def test_constants_have_one_bound_together():
    big = with_buffer(PlanBuffer(SCRATCH, limits.MAX_CONSTANTS_BYTES))
    half = UploadStep(4, 0, bytes(limits.MAX_CONSTANTS_BYTES // 2))
    fits = replace(big, steps=(*PLAN.steps, half))
    assert fits.constants_bytes == limits.MAX_CONSTANTS_BYTES // 2 + 16
    assert read_back(fits) == fits
    assert "bytes of constants" in refusal(replace(big, steps=(*PLAN.steps, half, half)))


def test_many_references_are_refused():
    step = PLAN.steps[2]
    assert isinstance(step, LaunchStep)
    words = limits.MAX_ARGUMENTS_BYTES // 8
    full = PlanArgument(
        bytes(8 * words), tuple(BufferReference(8 * at, 0, 0) for at in range(words))
    )
    many = replace(PLAN, steps=(replace(step, arguments=(full,)),) * 9, buffers=PLAN.buffers[:2])
    assert "references" in refusal(replace(many, outputs=()))
