"""The recorder: steps, lives of buffers, addresses in arguments, and rewinding."""

from __future__ import annotations

import struct

import pytest
import torch

from kernel_gym.plans.addresses import is_stand_in
from kernel_gym.plans.parse import parse_plan
from kernel_gym.plans.types import (
    BufferReference,
    BufferRole,
    BufferView,
    CodeForm,
    LaunchStep,
    PlanCode,
    UploadStep,
)
from kernel_gym.plans.write import write_plan
from kernel_gym.protocol.fields import TensorOnDevice
from kernel_gym.worker.recording.recorder import PlanRecorder, RecordedKernel
from kernel_gym.worker.sim.runtime import DeviceError, OutOfMemoryError

KERNEL = RecordedKernel(PlanCode(CodeForm.ASSEMBLER, b"text"), "work", 64)
OTHER = RecordedKernel(PlanCode(CodeForm.ASSEMBLER, b"other text"), "work", None)
ONE = (1, 1, 1)


@pytest.fixture
def recorder():
    return PlanRecorder("gfx942", 1 << 20)


def launch(recorder, *values, kernel=KERNEL, grid=ONE):
    recorder.launch(kernel, grid, (64, 1, 1), list(values), 0)


def pointer(address):
    return struct.pack("<Q", address)


def checked(recorder, *outputs):
    """Returns the plan after the parser has accepted it."""
    plan = recorder.plan(outputs)
    assert parse_plan(*write_plan(plan)) == plan
    return plan


def test_a_call_is_recorded_in_its_order(recorder):
    x = recorder.argument(64, BufferRole.INPUT)
    y = recorder.allocate(64)
    tensor = TensorOnDevice(y, (4,), (1,), torch.float32)
    recorder.fill(tensor, bytes(4))
    launch(recorder, pointer(x + 8), pointer(y), struct.pack("<i", 7))
    recorder.upload(y + 16, b"constant")
    recorder.copy(TensorOnDevice(x, (4,), (1,), torch.float32), tensor)
    plan = checked(recorder, recorder.view(tensor))
    assert [type(step).__name__ for step in plan.steps] == [
        "FillStep",
        "LaunchStep",
        "UploadStep",
        "CopyStep",
    ]
    first, second, third = plan.steps[1].arguments
    assert (first.references, second.references, third.references) == (
        (BufferReference(0, 0, 8),),
        (BufferReference(0, 1, 0),),
        (),
    )
    assert plan.outputs == (BufferView(1, 0, (4,), (1,), "float32"),)


def test_addresses_in_structs_and_tables_are_references(recorder):
    x = recorder.argument(64, BufferRole.INPUT)
    launch(recorder, struct.pack("<iiQd", 1, 2, x + 64, 0.5))
    recorder.upload(recorder.allocate(16), pointer(x) + pointer(x + 4))
    launched, uploaded = checked(recorder).steps
    assert isinstance(launched, LaunchStep)
    assert isinstance(uploaded, UploadStep)
    assert launched.arguments[0].references == (BufferReference(8, 0, 64),)
    assert launched.arguments[0].data == struct.pack("<iiQd", 1, 2, 0, 0.5)
    assert uploaded.references == (BufferReference(0, 0, 0), BufferReference(8, 0, 4))


def test_buffers_live_between_steps(recorder):
    first = recorder.allocate(8)
    launch(recorder, pointer(first))
    second = recorder.allocate(8)
    recorder.free(first)
    launch(recorder, pointer(second))
    lives = [(buffer.begin, buffer.end) for buffer in checked(recorder).buffers]
    assert lives == [(0, 1), (1, None)]
    with pytest.raises(DeviceError, match="is in no allocation"):
        launch(recorder, pointer(first))


@pytest.mark.parametrize("offset", [-1, 9, 4096])
def test_addresses_beside_a_buffer_are_refused(offset, recorder):
    address = recorder.allocate(8)
    recorder.allocate(8)
    assert is_stand_in(address + offset)
    with pytest.raises(DeviceError, match="is in no allocation"):
        launch(recorder, pointer(address + offset))


def test_memory_of_an_earlier_call_is_refused(recorder):
    kept = recorder.allocate(8)
    recorder.begin()
    recorder.allocate(8)
    with pytest.raises(DeviceError, match="allocated before it"):
        launch(recorder, pointer(kept))
    recorder.free(kept)
    assert [buffer.end for buffer in checked(recorder).buffers] == [None]


def test_calls_of_one_shape_have_equal_plans(recorder):
    plans = []
    for _ in range(2):
        recorder.begin()
        address = recorder.allocate(8)
        launch(recorder, pointer(address))
        plans.append(checked(recorder))
        recorder.free(address)
    assert plans[0] == plans[1]


def test_memory_is_as_large_as_the_device(recorder):
    recorder.allocate(1 << 20)
    with pytest.raises(OutOfMemoryError, match="out of device memory"):
        recorder.allocate(1)


def test_a_launch_without_workgroups_is_no_step(recorder):
    launch(recorder, grid=(4, 0, 1))
    assert checked(recorder).steps == ()


def test_code_is_held_once(recorder):
    for kernel in (KERNEL, OTHER, KERNEL):
        launch(recorder, kernel=kernel)
    plan = checked(recorder)
    assert [step.kernel for step in plan.steps] == [0, 1, 0]
    assert (len(plan.codes), len(plan.kernels)) == (2, 2)


def test_a_rewound_recording_has_no_trace_of_what_was_tried(recorder):
    x = recorder.argument(8, BufferRole.INPUT)
    kept = recorder.allocate(8)
    launch(recorder, pointer(x))
    before, mark = checked(recorder), recorder.mark
    freed = recorder.allocate(8)
    launch(recorder, pointer(freed), kernel=OTHER)
    recorder.free(freed)
    recorder.rewind(mark)
    assert checked(recorder) == before
    launch(recorder, pointer(kept), kernel=OTHER)
    assert len(checked(recorder).codes) == 2


def test_a_variable_keeps_its_code_when_a_recording_is_rewound(recorder):
    mark = recorder.mark
    address = recorder.variable(OTHER.code, "table", 8)
    recorder.rewind(mark)
    launch(recorder, pointer(address))
    plan = checked(recorder)
    assert plan.codes[plan.buffers[0].code] == OTHER.code


def test_tensors_without_elements_are_anywhere(recorder):
    recorder.argument(8, BufferRole.INPUT)
    empty = TensorOnDevice(0, (0, 3), (3, 1), torch.float32)
    recorder.fill(empty, bytes(4))
    recorder.copy(empty, empty)
    assert checked(recorder, recorder.view(empty)).steps == ()


def test_arguments_of_equal_calls_have_equal_addresses(recorder):
    first = [recorder.argument(size, BufferRole.INPUT) for size in (100, 5000)]
    kept = recorder.allocate(64)
    recorder.begin()
    assert [recorder.argument(size, BufferRole.INPUT) for size in (100, 5000)] == first
    assert recorder.allocate(64) > kept, "what host code keeps has an address of its own"
    with pytest.raises(DeviceError, match="allocated before it"):
        launch(recorder, pointer(kept))
    recorder.free(first[0])
    launch(recorder, pointer(first[0]))


def test_arguments_go_around_memory_that_host_code_keeps(recorder):
    recorder.argument(64, BufferRole.INPUT)
    kept = recorder.allocate(64)
    for _ in range(2):
        recorder.begin()
        small = recorder.argument(64, BufferRole.INPUT)
        large = recorder.argument(9000, BufferRole.INPUT)
        assert small + 64 < kept
        assert kept + 64 < large
    assert recorder.memory.held == 64 + 64 + 9000
