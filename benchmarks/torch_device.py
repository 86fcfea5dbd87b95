"""Measures the host's cost of the simulated device for PyTorch, in seconds of processor time.

It prints the start of the device beyond `import torch`, one small operator, the first call of an
operator for a shape, a block of a small transformer, and one small launch of a Triton kernel in a
warm process. Processor time is little disturbed by other work on the machine.

    python -m benchmarks.torch_device
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

STARTS = 5
"""Processes of each kind that are started; the median counts."""
_CHILDREN = """
import resource
def seconds():
    kinds = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    own, children = (resource.getrusage(kind) for kind in kinds)
    return sum(u.ru_utime + u.ru_stime for u in (own, children))
"""
_TORCH = _CHILDREN + "import torch\ntorch.ones(4).sum()\nprint(seconds())\n"
_DEVICE = (
    _CHILDREN
    + "import kernel_gym\nkernel_gym.enable_simulation()\nimport torch\n"
    + "torch.ones(4, device='cuda').sum()\nprint(seconds())\n"
)
_WARM = """
import json, time
import kernel_gym
kernel_gym.enable_simulation()
import torch, triton
import triton.language as tl

@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, i < n) + tl.load(y + i, i < n), i < n)

def cost(call, times):
    call()
    rounds = []
    for _ in range(7):
        before = time.process_time()
        for _ in range(times):
            call()
        rounds.append((time.process_time() - before) / times)
    return sorted(rounds)[3]

x = torch.ones(64, device="cuda")
out = torch.empty_like(x)
host = torch.ones(64)

class Block(torch.nn.Module):
    def __init__(self, width=64):
        super().__init__()
        parts = [torch.nn.Linear(width, n) for n in (3 * width, width, 4 * width, 4 * width)]
        self.mixed, self.out, self.gate, self.up = parts
        self.down = torch.nn.Linear(4 * width, width)
        self.first, self.second = torch.nn.RMSNorm(width), torch.nn.LayerNorm(width)

    def forward(self, x):
        heads = self.mixed(self.first(x)).view(2, 16, 3, 4, 16).permute(2, 0, 3, 1, 4)
        mixed = torch.nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(2, 16, 64))
        wide = self.second(x)
        return x + self.down(torch.nn.functional.silu(self.gate(wide)) * self.up(wide))

block, tokens = Block().cuda(), torch.randn(2, 16, 64, device="cuda")

line, into = torch.ones(10**4, device="cuda"), torch.empty(10**4, device="cuda")
lengths = iter(range(2, 10**4))

def add_of_a_new_form():
    n = next(lengths)
    torch.add(line[:n], line[:n], out=into[:n])

def train():
    block(tokens).sum().backward()

print(json.dumps({
    "operator_us": 1e6 * cost(lambda: x + x, 2000),
    "operator_into_us": 1e6 * cost(lambda: torch.add(x, x, out=out), 2000),
    "operator_of_the_cpu_us": 1e6 * cost(lambda: host + host, 2000),
    "operator_of_a_new_form_us": 1e6 * cost(add_of_a_new_form, 100),
    "block_us": 1e6 * cost(lambda: block(tokens), 50),
    "block_training_us": 1e6 * cost(train, 20),
    "launch_ms": 1e3 * cost(lambda: add[(1,)](x, x, out, 64, BLOCK=64), 50),
}))
"""


def main() -> None:
    """Prints the figures as JSON."""
    starts = {name: sorted(_run(text) for _ in range(STARTS)) for name, text in _KINDS.items()}
    middle = {name: values[STARTS // 2] for name, values in starts.items()}
    print(json.dumps(_run_json(_WARM) | {"start_s": middle["device"] - middle["torch"]} | middle))


_KINDS = {"torch": _TORCH, "device": _DEVICE}


def _run(text: str) -> float:
    return float(_output(text))


def _run_json(text: str) -> dict[str, float]:
    figures: dict[str, float] = json.loads(_output(text))
    return figures


def _output(text: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "measured.py"
        path.write_text(text, encoding="utf-8")  # Triton reads kernels from a file
        done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout.splitlines()[-1]


if __name__ == "__main__":
    main()
