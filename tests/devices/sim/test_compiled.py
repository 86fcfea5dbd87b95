"""Kernels of a suite's own code that the next worker with the same source does not compile."""

import os

import pytest
import torch

from kernel_gym.devices.base import Call, Failed
from kernel_gym.devices.budget import HOST_SECONDS, HostBudget
from kernel_gym.devices.sim.compiled import (
    CAPACITY,
    RESERVE,
    CompiledKernels,
    KernelFile,
    KnownKernels,
)
from kernel_gym.imports.bench.import_bench import ImportBench
from kernel_gym.protocol.compiled import LENGTH, SIZE
from kernel_gym.tasks.sampling import make_inputs
from kernel_gym.tasks.workload import Split
from kernel_gym.worker.sim.compiled import CompiledLog
from tests.imports.readers.recorded import recorded_task

COUNTING = """
import torch
import triton
import triton.language as tl

compiled = []


def listen(cache_hit, **_):
    if not cache_hit:
        compiled.append(1)


triton.knobs.compilation.listener = listen


@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, 2 * tl.load(x_ptr + at, mask=at < n), mask=at < n)


def double(x):
    out = torch.empty_like(x)
    double_kernel[(1,)](x, out, x.numel(), BLOCK=512)
    return out, torch.full((1,), float(len(compiled)), device="cuda")
"""
TESTS = """
import torch

result_gold = double(torch.randn(300, device="cuda"))
"""
OTHER = "\n# another source\n"


@pytest.fixture(scope="module")
def task():
    with ImportBench("sim:gfx942") as bench:
        return recorded_task(COUNTING, TESTS, ["double"], bench)


@pytest.fixture
def device():
    with ImportBench("sim:gfx942") as bench:
        yield bench.evaluator.device


def compilations(device, task, source, resident):
    """Opens a session, makes one call, and returns how many kernels it compiled."""
    workload = task.problem.stated_workloads(Split.TRAIN)[0]
    inputs = make_inputs(task.problem, workload, 1)
    session = device.open(task, resident=resident)
    try:
        assert session.load(task.problem.assembled(source)) is None
        call = session.call(inputs, workload.dims)
        assert isinstance(call, Call), call
        out, count = (output.tensor for output in call.outputs)
        assert torch.equal(out, 2 * inputs["c0_t0"])
        return int(count)
    finally:
        session.close()


def test_the_next_worker_compiles_nothing(device, task):
    assert compilations(device, task, COUNTING, resident=True) == 1
    assert compilations(device, task, COUNTING, resident=True) == 0
    assert compilations(device, task, COUNTING, resident=False) == 0


def test_what_a_candidate_compiles_is_not_kept(device, task):
    assert compilations(device, task, COUNTING, resident=False) == 1
    assert compilations(device, task, COUNTING, resident=False) == 1


def test_another_source_compiles_itself(device, task):
    assert compilations(device, task, COUNTING, resident=True) == 1
    assert compilations(device, task, COUNTING + OTHER, resident=False) == 1


def test_a_worker_that_ends_after_it_compiled_leaves_its_kernels(device, task):
    ends = "    if compiled:\n        __import__('os')._exit(3)\n    return out,"
    source = COUNTING.replace("    return out,", ends)
    workload = task.problem.stated_workloads(Split.TRAIN)[0]
    session = device.open(task, resident=True)
    try:
        assert session.load(task.problem.assembled(source)) is None
        failed = session.call(make_inputs(task.problem, workload, 1), workload.dims)
        assert isinstance(failed, Failed), failed
    finally:
        session.close()
    assert compilations(device, task, source, resident=True) == 0


@pytest.fixture
def opened():
    """Opens files of sessions and closes them at the end."""
    files = []

    def open_file(kernels, keeps):
        files.append(KernelFile(kernels, keeps))
        return files[-1]

    yield open_file
    for file in files:
        file.close()


def content_of(file):
    (used,) = LENGTH.unpack(os.pread(file.descriptor, LENGTH.size, 0))
    return os.pread(file.descriptor, used, LENGTH.size)


def test_a_candidate_is_charged_what_compiling_took(opened):
    kernels, budget = CompiledKernels(), HostBudget()
    kernels.keep("source", KnownKernels(b"kernels", 7.0))
    file = opened(kernels, keeps=False)
    file.fill("source", budget)
    assert content_of(file) == b"kernels"
    assert budget.host == HOST_SECONDS - 7.0


def test_a_candidate_that_could_not_pay_compiles_itself(opened):
    kernels, budget = CompiledKernels(), HostBudget()
    kernels.keep("source", KnownKernels(b"kernels", HOST_SECONDS - RESERVE + 0.1))
    file = opened(kernels, keeps=False)
    file.fill("source", budget)
    assert content_of(file) == b""
    assert budget.host == HOST_SECONDS


def test_only_requests_that_compile_count(opened):
    kernels = CompiledKernels()
    file = opened(kernels, keeps=True)
    file.fill("source", None)
    file.keep(5.0, stopped=False)
    assert kernels.of("source") == KnownKernels()
    CompiledLog(file.descriptor).add("key", {"kernel.hsaco": b"code"})
    file.keep(3.0, stopped=False)
    file.keep(2.0, stopped=False)
    assert kernels.of("source").seconds == 3.0


def test_a_candidate_gets_no_kernels_of_a_request_that_was_stopped(opened):
    kernels = CompiledKernels()
    file = opened(kernels, keeps=True)
    file.fill("source", None)
    CompiledLog(file.descriptor).add("key", {"kernel.hsaco": b"code"})
    file.keep(3.0, stopped=True)
    candidate, baseline = opened(kernels, keeps=False), opened(kernels, keeps=True)
    candidate.fill("source", HostBudget())
    baseline.fill("source", None)
    assert content_of(candidate) == b""
    assert content_of(baseline) == content_of(file)


@pytest.mark.parametrize("length", [SIZE, 1 << 40, (1 << 64) - 1])
def test_a_false_length_reads_no_more_than_the_file(opened, length):
    kernels = CompiledKernels()
    file = opened(kernels, keeps=True)
    file.fill("source", None)
    os.pwrite(file.descriptor, LENGTH.pack(length), 0)
    file.keep(1.0, stopped=False)
    assert len(kernels.of("source").content) == SIZE - LENGTH.size
    opened(kernels, keeps=True).fill("source", None)


def test_a_worker_cannot_change_the_size_of_the_file(opened):
    file = opened(CompiledKernels(), keeps=True)
    for size in (SIZE - 1, SIZE + 1):
        with pytest.raises(PermissionError):
            os.ftruncate(file.descriptor, size)


def test_the_kernels_of_a_few_sources_are_kept():
    kernels = CompiledKernels()
    for number in range(CAPACITY + 1):
        kernels.keep(str(number), KnownKernels(b"kernels", 1.0))
    assert kernels.of("0") == KnownKernels()
    assert kernels.of(str(CAPACITY)).content == b"kernels"
