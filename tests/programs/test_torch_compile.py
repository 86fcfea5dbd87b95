"""`torch.compile` in a program on a simulated GPU: Inductor's kernels are executed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PROGRAM = """
import json, sys
import kernel_gym
simulation = kernel_gym.enable_simulation(threads=1)
import torch
import torch.nn.functional as F

def norm(x, w):
    return F.gelu(F.layer_norm(x, (256,), w)) * 2 + x

def product(a, b):
    return F.relu(a @ b)

def kernels(function, *args):
    before = len(simulation.launches)
    compiled = torch.compile(function, mode=sys.argv[1])
    torch.testing.assert_close(compiled(*args), function(*args), rtol=1e-3, atol=1e-3)
    first = len(simulation.launches)
    compiled(*args)
    return [launch["name"] for launch in simulation.launches[first:]]

half = {"device": "cuda", "dtype": torch.float16}
model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)).cuda()
x = torch.randn(16, 64, device="cuda")
eager = torch.autograd.grad(model(x).sum(), model.parameters())
compiled = torch.autograd.grad(torch.compile(model)(x).sum(), model.parameters())
torch.testing.assert_close(compiled, eager)
print(json.dumps({
    "norm": kernels(norm, torch.randn(16, 256, device="cuda"), torch.randn(256, device="cuda")),
    "product": kernels(product, torch.randn(64, 64, **half), torch.randn(64, 64, **half)),
}))
"""


@pytest.fixture(scope="module", params=["default", "max-autotune"])
def compiled(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("compiled")
    program = folder / "program.py"  # Triton reads kernels from a file
    program.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(program), request.param],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "Exception ignored" not in done.stderr
    return request.param, json.loads(done.stdout.splitlines()[-1])


def test_operators_are_fused_into_one_kernel(compiled):
    _, kernels = compiled
    assert len(kernels["norm"]) == 1
    assert kernels["norm"][0].startswith("triton_per_fused_")


def test_products_have_templates_where_they_are_tuned(compiled):
    mode, kernels = compiled
    template = [name for name in kernels["product"] if name.startswith("triton_tem_fused_")]
    assert len(template) == (1 if mode == "max-autotune" else 0)
