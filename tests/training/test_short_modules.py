"""TorchInductor's modules in short: names, launches, and what is left out."""

import ast

import pytest

from kernel_gym.policies.inductor_module import NoCandidateError
from kernel_gym.tasks import get_problem
from kernel_gym.training.short_modules import shortened

PROBLEM = "generated:seed=905,depth=3"  # x + m1, relu squared, + m3
HEAD = '''"""TorchInductor's kernels for the reference of a graph."""

import math

import torch
import triton
import triton.language as tl
from torch._inductor.runtime.triton_helpers import libdevice
from torch._inductor.runtime.triton_helpers import math as tl_math


def _view(tensor, size, stride, offset=0):
    return torch.as_strided(tensor, size, stride, tensor.storage_offset() + offset)


@triton.jit
def sum_helper(a, b):
    return a + b


'''
KERNEL = """@triton.jit
def triton_red_0(in_ptr0, in_ptr1, out_ptr0, ks0, xnumel, r0_numel, XBLOCK : tl.constexpr):
    rnumel = r0_numel
    RBLOCK: tl.constexpr = XBLOCK
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:]
    x0 = xindex
    _tmp4 = tl.full([XBLOCK], 0, tl.float32)
    for r0_offset in range(0, r0_numel, XBLOCK):
        r0_1 = r0_offset
        tmp7 = tl.load(in_ptr0 + (r0_1 + ks0*x0), x0 < xnumel).to(tl.float32)
        tmp0 = tmp7.to(tl.float32)
        tl.device_assert(tmp0 < 4, "index out of bounds: 0 <= tmp0 < ks0")
        tmp1 = tl.load(in_ptr1 + (x0)).to(tl.float16)
        tmp2 = tmp1.to(tl.float32)
        _tmp4 = sum_helper(_tmp4, tmp0 + tmp2)
    tmp4 = libdevice.exp(tl.sum(_tmp4, 0))
    tl.store(out_ptr0 + (x0), tmp4, x0 < xnumel)


def run_triton_red_0(in_ptr0, in_ptr1, out_ptr0, ks0, xnumel, r0_numel):
    grid = (-((xnumel) // -(2)), 1, 1)
    triton_red_0[grid](in_ptr0=in_ptr0, in_ptr1=in_ptr1, out_ptr0=out_ptr0, ks0=ks0, \
xnumel=xnumel, r0_numel=r0_numel, XBLOCK=2, num_warps=8)


"""
ENTRY = """def fused(x, m1, m3):
    x = x.contiguous()
    (arg0_1, arg1_1, arg2_1) = (x.size()[0], x, m1)
    s77 = arg0_1
    arg1_1_size = arg1_1.size()
    s27 = arg1_1_size[1]
    buf7 = torch.empty_strided((s77, s27), (s27, 1), dtype=torch.float16, device='cuda')
    triton_red_0_xnumel = s77 * s27
    run_triton_red_0(arg1_1, arg2_1, buf7, s27, triton_red_0_xnumel, s27)
    buf8 = buf7
    return buf8
"""
SHORT = """import torch
import triton
import triton.language as tl
from torch._inductor.runtime.triton_helpers import libdevice


@triton.jit
def sum_helper(a, b):
    return a + b


@triton.jit
def kernel0(x_ptr, m1_ptr, u0_ptr, cols, xnumel, XBLOCK: tl.constexpr):
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:]
    a0 = tl.full([XBLOCK], 0, tl.float32)
    for r0_offset in range(0, cols, XBLOCK):
        t1 = tl.load(x_ptr + (r0_offset + cols * xindex), xindex < xnumel).to(tl.float32)
        t2 = tl.load(m1_ptr + xindex).to(tl.float16)
        t3 = t2.to(tl.float32)
        a0 = sum_helper(a0, t1 + t3)
    t0 = libdevice.exp(tl.sum(a0, 0))
    tl.store(u0_ptr + xindex, t0, xindex < xnumel)


def fused(x, m1, m3):
    rows, cols = x.shape
    x = x.contiguous()
    u0 = torch.empty_strided((rows, cols), (cols, 1), dtype=torch.float16, device='cuda')
    kernel0[triton.cdiv(rows * cols, 2),](x, m1, u0, cols, rows * cols, XBLOCK=2, num_warps=8)
    return u0
"""


def test_names_follow_from_the_graph_and_what_has_no_effect_is_left_out():
    assert shortened(HEAD + KERNEL + ENTRY, get_problem(PROBLEM)) == SHORT


def test_the_size_of_a_buffer_stays():
    entry = ENTRY.replace("    buf8 = buf7\n", "    buf8 = buf7[:buf7.size()[0]]\n")
    assert "u0[:u0.size()[0]]" in shortened(HEAD + KERNEL + entry, get_problem(PROBLEM))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # a value that is not always a copy of one name
        ("        r0_1 = r0_offset\n", "        r0_1 = r0_offset\n        r0_1 = xnumel\n"),
        # a cast to another dtype
        ("tmp0 = tmp7.to(tl.float32)", "tmp0 = tmp7.to(tl.float64)"),
        # an accumulator that is read
        ("_tmp4 = tl.full([XBLOCK], 0, tl.float32)", "_tmp4 = tl.full([XBLOCK], 7, tl.float32)"),
    ],
)
def test_what_has_an_effect_stays(before, after):
    assert before in KERNEL
    changed = shortened(HEAD + KERNEL.replace(before, after) + ENTRY, get_problem(PROBLEM))
    assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(SHORT))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("    run_triton_red_0(arg1_1, arg2_1, buf7, s27, s77, s27)\n", "launches a kernel twice"),
        ("    if s77:\n        return x\n", "has the statement"),
        ("    buf7.zero_()\n", "calls 'buf7.zero_'"),
        ("    other[s77, 1](x=arg1_1)\n", "calls 'other'"),
    ],
)
def test_an_entry_of_another_form_is_no_candidate(line, message):
    entry = ENTRY.replace("    return", f"{line}    return")
    with pytest.raises(NoCandidateError, match=message):
        shortened(HEAD + KERNEL + entry, get_problem(PROBLEM))
