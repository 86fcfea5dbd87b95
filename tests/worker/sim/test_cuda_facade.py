"""Snippets as a model would write them for a GPU, run unmodified in a worker on the simulator."""

from __future__ import annotations

import pytest
import torch

from kernel_gym.devices.base import Call, Failed
from kernel_gym.devices.sim.device import SimDevice
from kernel_gym.tasks import get_task

TASK = "triton2triton/softmax"
HEAD = """
import torch
import triton
import triton.language as tl
"""
DOUBLE = """
@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2, mask=mask)

def double(x, out=None):
    out = torch.empty_like(x) if out is None else out
    n = x.numel()
    double_kernel[(triton.cdiv(n, 256),)](x, out, n, BLOCK=256)
    return out
"""
SNIPPETS = {
    "device": """
def softmax(x):
    assert torch.cuda.is_available() and torch.cuda.device_count() == 1
    assert x.is_cuda and x.device == torch.device("cuda", torch.cuda.current_device())
    assert "MI300X" in torch.cuda.get_device_name(0)
    properties = torch.cuda.get_device_properties(x.device)
    assert properties.multi_processor_count == 304 and properties.warp_size == 64
    assert properties.gcnArchName.startswith("gfx942") and torch.version.hip is not None
    assert triton.runtime.driver.active.get_current_target().arch == "gfx942"
    with torch.cuda.device(x.device):
        out = torch.empty(x.shape, dtype=x.dtype, device="cuda")
    torch.cuda.synchronize()
    return double(x, out)
""",
    "events": """
def softmax(x):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    start.record()
    out = double(x)
    end.record()
    end.synchronize()
    assert 0.001 < start.elapsed_time(end) < 1
    try:
        torch.cuda.Event().elapsed_time(end)
    except ValueError:
        return out
""",
    "streams": """
def softmax(x):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        assert torch.cuda.current_stream() is side
        out = double(x)
        done = side.record_event()
    torch.cuda.current_stream().wait_event(done)
    assert torch.cuda.current_stream() is torch.cuda.default_stream()
    return out
""",
    "memory": """
def softmax(x):
    before = torch.cuda.memory_allocated()
    scratch = torch.zeros(1024, dtype=torch.float32, device="cuda")
    assert torch.cuda.memory_allocated() == before + 4096
    del scratch
    assert torch.cuda.memory_allocated() == before
    assert torch.cuda.max_memory_allocated() >= before + 4096
    free, total = torch.cuda.mem_get_info()
    assert free <= total == torch.cuda.get_device_properties(0).total_memory
    torch.cuda.empty_cache()
    return double(x)
""",
    "host_to_device": """
def softmax(x):
    two = torch.tensor([2.0], dtype=torch.float32).cuda()
    other = torch.arange(4).to(x.device, non_blocking=True)
    assert two.is_cuda and other.device.type == "cuda"
    return double(x)
""",
    "do_bench": """
def softmax(x):
    ms = triton.testing.do_bench(lambda: double(x), warmup=5, rep=20)
    low, middle, high = triton.testing.do_bench(lambda: double(x), quantiles=[0.2, 0.5, 0.8])
    assert 0 < ms < 1 and low == middle == high
    return double(x)
""",
    "autotune_and_heuristics": """
@triton.autotune(
    configs=[triton.Config({"BLOCK": b}, num_warps=w) for b, w in ((64, 1), (1024, 4))], key=["n"]
)
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def tuned(x_ptr, out_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.store(out_ptr + offsets, tl.load(x_ptr + offsets) * 2)
    else:
        mask = offsets < n
        tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * 2, mask=mask)

def softmax(x):
    out = torch.empty_like(x)
    n = x.numel()
    tuned[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, out, n)
    assert tuned.best_config is not None
    return out
""",
    "graph": """
def softmax(x):
    out = torch.zeros_like(x)
    double(x, out)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        assert torch.cuda.is_current_stream_capturing()
        middle = double(x)
        out.zero_()
        out.copy_(middle)
    del middle
    out.zero_()
    graph.replay()
    graph.replay()
    return out
""",
}
REFUSED = {
    "reads": ("def softmax(x):\n    return x.sum().item()", "refused"),
    "host": ("def softmax(x):\n    return x.cpu()", "reading device memory on the host is refused"),
    "math": ("def softmax(x):\n    return torch.softmax(x, -1)", "do the work in your kernel"),
    "graph": ("def softmax(x):\n    torch.cuda.CUDAGraph().replay()", "was not captured"),
}


def call(source):
    x = torch.randn(8, 40, dtype=torch.float32).to(get_task(TASK).problem.outputs[0].dtype)
    session = SimDevice().open(get_task(TASK))
    try:
        failed = session.load(HEAD + DOUBLE + source)
        return x, failed or session.call({"x": x}, {"rows": 8, "cols": 40})
    finally:
        session.close()


@pytest.mark.parametrize("name", SNIPPETS)
def test_gpu_code_runs_unmodified(name):
    x, result = call(SNIPPETS[name])
    assert isinstance(result, Call), result
    assert torch.equal(result.outputs[0].tensor, 2 * x)


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_rules_forbid_is_refused_with_a_reason(name):
    source, reason = REFUSED[name]
    _, result = call(source)
    assert isinstance(result, Failed)
    assert reason in result.message
