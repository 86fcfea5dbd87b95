"""Roofline times by the data sheets."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from kernel_gym.hardware import MI300X, SIMULATED
from kernel_gym.tasks import Scale, get_problem


def test_the_fastest_type_bounds_the_rate():
    flops = 10**15
    halves = MI300X.roofline_seconds(0, flops, torch.bfloat16)
    assert halves == pytest.approx(flops / 1307.4e12)
    assert MI300X.roofline_seconds(0, flops, torch.float32, torch.bfloat16) == halves
    assert MI300X.roofline_seconds(0, flops, torch.float32) == pytest.approx(flops / 163.4e12)


@pytest.mark.parametrize(
    ("name", "rate"),
    [
        ("fused_linear_cross_entropy", 1307.4e12),  # bfloat16 matrices, float32 results
        ("int8_matmul", 2614.9e12),  # int8 matrices, float16 results
        ("matmul", 1307.4e12),
    ],
)
def test_a_product_is_bounded_by_the_type_of_its_matrices(name, rate):
    problem = get_problem(name)
    for dims in problem.train[Scale.FULL]:
        flops = problem.flops(dims)
        seconds = MI300X.roofline_seconds(0, flops, *problem.dtypes_at(dims))
        assert seconds == pytest.approx(flops / rate)


COPY_OF_64_NUMBERS = """
import sys
import kernel_gym
simulation = kernel_gym.enable_simulation(sys.argv[1], threads=1)
import torch, triton, triton.language as tl

@triton.jit
def copy(x, out):
    i = tl.arange(0, 64)
    tl.store(out + i, tl.load(x + i))

x = torch.ones(64, device="cuda")
copy[(1,)](x, torch.empty_like(x), num_warps=1)
print(simulation.launches[-1]["seconds"])
"""


@pytest.mark.parametrize("arch", sorted(SIMULATED))
def test_an_operator_pays_what_the_shortest_simulated_kernel_takes(arch, tmp_path):
    program = tmp_path / "shortest_kernel.py"  # Triton reads kernels from a file
    program.write_text(COPY_OF_64_NUMBERS)
    command = [sys.executable, str(program), arch]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=True
    )
    seconds = SIMULATED[arch].operator_seconds(512, 0, torch.float32)
    assert float(done.stdout) == pytest.approx(seconds, rel=0.01)
