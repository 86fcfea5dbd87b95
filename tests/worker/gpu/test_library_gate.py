"""PyTorch's kernels taken away; the CPU's table stands for a GPU's. In processes of their own."""

import subprocess
import sys

import pytest

SETUP = """
import gc
import torch
from torch.utils._python_dispatch import _disable_current_modes
from kernel_gym.worker.gpu.library_gate import take_kernels_away
a, b = torch.ones(4, 4), torch.ones(4, 4)
assert take_kernels_away(["CPU"]) > 500
"""
REFUSED = """
try:
    {call}
except RuntimeError as error:
    assert "not here" in str(error), error
else:
    raise SystemExit("it computed")
"""


def _run(text):
    done = subprocess.run([sys.executable, "-c", SETUP + text], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "call",
    [
        "torch.matmul(a, b)",
        "torch.softmax(a, -1)",
        "a.add_(1)",
        "torch.nn.functional.linear(a, b)",
        "torch.einsum('ij,jk->ik', a, b)",
        "torch.ops.aten.mm.default(a, b)",
        "torch.ops.aten.mm.default.redispatch(torch._C._dispatch_keys(a), a, b)",
        "a.sum()",
        "a[0, 0].item()",
    ],
)
def test_whatever_computes_is_refused_with_all_modes_off(call):
    text = REFUSED.format(call=call).replace("\n", "\n    ")
    _run("with _disable_current_modes(), torch._C._DisableTorchDispatch():\n    pass\n    " + text)


def test_memory_is_allocated_viewed_filled_and_copied():
    _run(
        """
out = torch.empty((4, 4))
out.zero_()
out.fill_(3)
out.copy_(a)
zeros, full = torch.zeros(8), torch.full((8,), 7.0)
for made in (out.view(-1)[2:].view(torch.uint8), a.t().contiguous(), a.clone(), full.reshape(2, 4)):
    assert made.data_ptr()
out.view(-1).view(torch.uint8).fill_(0xFF)
torch.empty(8).as_strided((2, 2), (2, 1), 1)
"""
    )


def test_no_object_brings_the_kernels_back():
    _run("gc.collect()\n" + REFUSED.format(call="torch.matmul(a, b)"))


USUAL = """
from kernel_gym.devices.operators import USUAL
from kernel_gym.worker.gpu.library_gate import take_kernels_away
import torch
assert take_kernels_away(["CPU"], USUAL) > 300
a, b, i = torch.ones(4, 4), torch.ones(4, 4), torch.tensor([1, 0, 3])
"""
KEPT = """
a @ b, a + b, a.mean(), a.sum(0), a.std(), a.var(1), a.max(1), a.argmax(), a.cumsum(0), a.sort(0)
torch.softmax(a, 1), torch.log_softmax(a, 1), torch.nn.functional.layer_norm(a, (4,))
a[i], a.half().float(), torch.cat([a, b]), torch.stack([a, b]), torch.where(a > 0, a, b), a.tril()
a[i] = 2.0
a.masked_fill_(b > 2, 0.0).clamp_(min=0.0)
torch.randn(4, 4), torch.rand(4), torch.randint(0, 4, (3,)), torch.arange(4), torch.randperm(4)
torch.full((2, 2), 3.0), torch.zeros_like(a), torch.nn.functional.embedding(i, a), a.topk(2)
assert a[0, 0].item() == a.flatten()[0]
torch.nn.functional.gelu(a), torch.sigmoid(a), torch.nn.functional.silu(a), a.nonzero()
a.logsumexp(1)
torch.nn.functional.pad(a, (1, 1)), a.repeat(2, 2), a.repeat_interleave(2, 0), a.norm(), a.pow(2)
"""


def test_all_usual_operators_remain_where_the_suites_own_code_calls_them():
    done = subprocess.run(
        [sys.executable, "-c", USUAL + KEPT], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "call",
    [
        "torch.linalg.qr(a)",
        "torch.fft.fft(a)",
        "torch.cdist(a, b)",
        "torch.linalg.solve(a + torch.eye(4), b)",
    ],
)
def test_operators_that_do_the_work_of_a_task_do_not_remain(call):
    text = USUAL + REFUSED.format(call=call)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


OWN = """
from kernel_gym.devices.operators import MOVES
from kernel_gym.worker.gpu.library_gate import take_kernels_away
import torch
a, b = torch.rand(4, 4), torch.rand(4, 4)
take_kernels_away(["CPU"], MOVES | {permitted})
assert torch.cat([a, b]).shape == (8, 4)
assert a.clone().half().float().roll(1, 0)[0, 0].item() >= 0
torch.stack([a, b]), torch.nn.functional.pad(a, (1, 1)), torch.arange(4), torch.eye(3)
{kept}
"""


@pytest.mark.parametrize(
    ("permitted", "kept", "gone"),
    [
        ("frozenset()", "", "torch.softmax(a, -1)"),
        ("frozenset()", "", "a.sum(1)"),
        ("frozenset({'aten::sum'})", "a.sum(1)", "torch.softmax(a, -1)"),
        ("frozenset({'aten::mean', 'aten::logsumexp'})", "a.mean(1), a.logsumexp(1)", "a @ b"),
        ("frozenset({'aten::sort', 'aten::topk'})", "a.sort(1), a.topk(2)", "a.exp()"),
    ],
)
def test_only_operators_of_the_suites_own_code_remain(permitted, kept, gone):
    text = OWN.format(permitted=permitted, kept=kept) + REFUSED.format(call=gone)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
