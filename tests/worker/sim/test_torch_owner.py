"""The device of a candidate's worker: what is a view, a request, or refused."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PROGRAM = '''
from kernel_gym.torch_device.library import load_before_torch
load_before_torch()
import json, sys, traceback
import torch
from kernel_gym.devices.sim import memory
from kernel_gym.worker.sim import torch_owner, cuda_facade
from kernel_gym.worker.sim.properties import PROPERTIES

class Requests:
    """Stands for the device at the end of the pipe: keeps what it is asked."""
    capturing, allocated, most_allocated, released = False, 0, 0, list
    properties = PROPERTIES["gfx942"]
    def __init__(self):
        self.log, self._next = [], memory.ARENA_BASE
    def allocate(self, size):
        self.log.append(("allocate", size))
        self._next += 0x100000
        return self._next
    def __getattr__(self, name):
        return lambda *args: self.log.append((name, *args))
    def names(self):
        return [entry[0] for entry in self.log]

memory.reserve_range()  # nobody can access the device's memory here
requests = Requests()
torch_owner.ask(requests, requests.refuse)
cuda_facade.install(requests)
from tests.worker.sim.test_torch_owner import CASES
reports = {}
for name, text in CASES.items():
    x = torch.empty(4, 6, device="cuda")
    requests.log.clear()
    try:
        exec(text, dict(globals()))
        reports[name] = ""
    except BaseException:
        reports[name] = traceback.format_exc()
print(json.dumps(reports))
'''
VIEWS = """
view = {view}
host, result = view(torch.empty(4, 6)), view(x)
assert (result.shape, result.stride(), result.dtype) == (host.shape, host.stride(), host.dtype)
assert result.data_ptr() == x.data_ptr() + host.storage_offset() * host.itemsize
assert requests.log == []
"""
REFUSED = """
try:
    {call}
except RuntimeError as error:
    assert "is refused" in str(error) and "kernel" in str(error), error
else:
    raise SystemExit("it was computed")
assert "refuse" in requests.names(), requests.log
assert not {{"launch", "download"}} & set(requests.names())
"""
CASES = {
    **{
        f"view: {view}": VIEWS.format(view=view)
        for view in (
            *("lambda x: x.view(-1)", "lambda x: x[1:, ::2]", "lambda x: x[2]"),
            *("lambda x: x.t()", "lambda x: x.permute(1, 0)", "lambda x: x.flatten()"),
            "lambda x: x.unsqueeze(0).expand(3, 4, 6)",
            *("lambda x: x.view(torch.int32)", "lambda x: x.chunk(2)[1]"),
            *("lambda x: x.unfold(1, 2, 2)", "lambda x: x.diagonal()", "lambda x: x.detach()"),
            "lambda x: x[:, :2].squeeze_(0).t_()",
        )
    },
    **{
        f"allocation: {call}": f"made = {call}\nassert requests.log == [('allocate', 96)]\n"
        "assert made.is_cuda and made.shape == (4, 6)"
        for call in (
            *("torch.empty(4, 6, device='cuda')", "torch.empty_like(x)", "x.new_empty((4, 6))"),
            "torch.empty((4, 6), device=x.device)",
            "torch._C._dynamo.guards._empty_strided_cuda((4, 6), (6, 1), torch.float32)",
        )
    },
    "architectures": "assert torch._C._cuda_getArchFlags().split() == torch.cuda.get_arch_list()",
    "fills": """
torch.zeros(2, device="cuda")
torch.full((2,), 1.5, device="cuda")
x.fill_(3)
x[0] = 7.0
torch.empty(2, dtype=torch.bool, device="cuda").fill_(True)
fills = [entry[2] for entry in requests.log if entry[0] == "fill"]
assert fills == [0, 1.5, 3, 7.0, True] and fills[-1] is True, fills
""",
    "copies": """
copied = x.t().contiguous()
assert copied.is_contiguous() and requests.names() == ["allocate", "copy"]
_, source, target = requests.log[1]
assert (source.strides, target.strides) == ((1, 6), (4, 1))
requests.log.clear()
assert x.contiguous() is x and requests.log == []
x.copy_(torch.empty(6, device="cuda"))
assert requests.log[1][1].strides == (0, 1)
""",
    "uploads": """
made = torch.tensor([1.0, 2.0], device="cuda")
content = torch.tensor([1.0, 2.0]).numpy().tobytes()
assert requests.log[1] == ("upload", made.data_ptr(), content)
requests.log.clear()
x.t()[:2].copy_(torch.ones(4))
assert requests.names() == ["allocate", "upload", "copy"]
""",
    "growing": """
x.resize_(2)
assert requests.log == []
x.resize_(100)
assert requests.names() == ["allocate", "copy"]
""",
    "printing": """
assert str(x) == "tensor(shape=(4, 6), dtype=torch.float32, device='cuda:0')"
assert f"{torch.ones(1)}" == "tensor([1.])"
""",
    "names": """
for call, name in (
    (lambda: x + 1, "aten.add.Tensor"),
    (lambda: torch.softmax(x, -1), "aten._softmax.default"),
    (lambda: x.half(), "conversion from torch.float32 to torch.float16"),
    (lambda: x[0, 0].item(), "aten._local_scalar_dense.default (host reads device memory)"),
):
    requests.log.clear()
    try:
        call()
    except RuntimeError:
        assert ("refuse", name) in requests.log, requests.log
""",
    **{
        f"refused: {call}": REFUSED.format(call=call)
        for call in (
            *("x + 1", "x.add_(1)", "torch.softmax(x, -1)", "x.half()", "x.cpu()", "x.sum()"),
            *("x[0, 0].item()", "float(x[0, 0])", "x.tolist()", "bool((x[0, 0]))", "x @ x.t()"),
            *("x[torch.tensor([0, 1])]", "torch.cat([x, x])", "torch.arange(4, device='cuda')"),
            *("torch.rand(4, device='cuda')", "torch.equal(x, x)", "x.nonzero()", "-x"),
            *("x.copy_(x.half())", "torch.nn.functional.linear(x, x)", "torch.ones(4, 6).copy_(x)"),
            *("x.sort()", "torch.conv1d(x[None], x[None])", "x.to('cpu')"),
            *("torch.ops.aten.mm.default(x, x.t())", "torch.where(x > 0, x, x)", "x.clamp_(0)"),
            "torch.ops.aten.add.out(x, x, out=x)",
        )
    },
}


@pytest.fixture(scope="module")
def found():
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", CASES)
def test_a_candidate_moves_memory_and_computes_nothing(found, name):
    assert found[name] == ""
