"""Plans for an NVIDIA GPU that this machine does not have."""

from __future__ import annotations

import pytest
import torch

from kernel_gym.devices.compiling import CompilerNote
from kernel_gym.plans.parse import parse_plan
from kernel_gym.plans.types import CodeForm, LaunchStep
from kernel_gym.protocol import worker as messages
from kernel_gym.protocol.request import encode
from kernel_gym.sandbox.spawn import shared_template

H100 = {
    "name": "NVIDIA H100 80GB HBM3",
    "arch": "sm_90",
    "hip": None,
    "major": 9,
    "minor": 0,
    "warp_size": 32,
    "target": ["cuda", 90, 32],
    "multi_processor_count": 132,
    "shared_memory": 232448,
    "total_memory": 80 << 30,
    "L2_cache_size": 50 << 20,
    "regs_per_multiprocessor": 65536,
    "max_threads_per_multi_processor": 2048,
}
HEAD = """
import torch, triton
import triton.language as tl
@triton.jit
def scale(x, y, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n, other=0.0) * factor, mask=at < n)
def work(x):
    y = torch.empty_like(x)
    assert torch.version.hip is None
    assert torch.cuda.get_device_capability() == (9, 0)
    grid = (triton.cdiv(x.numel(), 256),)
    scale[grid](x, y, x.numel(), 0.5, BLOCK=256, num_warps=OPTIONS)
    return y
"""


def recorded(source):
    options = {"arch": "sm_90", "memory": 1 << 30, "reported": H100}
    note = CompilerNote()
    files = [note.descriptor]
    child = shared_template().fork("recorder", files, options, trusted=True, buffers=2)
    try:
        child.channel.recv(60)
        load = messages.LoadOnSimulator("triton", "work", source)
        child.channel.request(encode(load)[0], timeout=60)
        tensor = messages.ArenaTensor(0, 4000, 0, (1000,), (1,), torch.float32)
        request = encode(messages.RecordCall([tensor], []))[0]
        return child.channel.request(request, timeout=120)
    finally:
        child.close()
        note.close()


def test_a_kernel_is_compiled_and_its_launch_is_recorded():
    answer = recorded(HEAD.replace("OPTIONS", "8"))
    plan = parse_plan(answer.header["plan"], answer.buffers[0], b"")
    assert plan.arch == "sm_90"
    (code,) = plan.codes
    assert code.form is CodeForm.CUBIN
    (step,) = plan.steps
    assert isinstance(step, LaunchStep)
    assert (step.grid, step.block) == ((4, 1, 1), (256, 1, 1))
    assert [len(argument.data) for argument in step.arguments] == [8, 8, 4, 4]
    assert [[one.buffer for one in argument.references] for argument in step.arguments] == [
        [0],
        [1],
        [],
        [],
    ]


@pytest.mark.parametrize("option", ["launch_cooperative_grid=True", "num_ctas=2"])
def test_a_launch_that_is_not_plain_is_refused_by_name(option):
    answer = recorded(HEAD.replace("OPTIONS", f"4, {option}"))
    assert option.partition("=")[0] in answer.header["error"]["message"]
