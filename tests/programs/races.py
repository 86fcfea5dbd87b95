"""Three kernels that lack a barrier, and the same ones with it."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax(row, scratch, BARRIERS: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    value = tl.load(row + i)
    tl.store(scratch + i, value)  # sum written
    if BARRIERS:
        tl.debug_barrier()
    other = tl.load(scratch + (N - 1 - i))  # maximum read
    tl.store(row + i, value + other)


@triton.jit
def count_tokens(experts, counts, offsets, BARRIERS: tl.constexpr, N: tl.constexpr):
    expert = tl.load(experts + tl.arange(0, N))
    tl.atomic_add(counts + expert, 1)  # counted
    if BARRIERS:
        tl.debug_barrier()
    total = tl.load(counts + expert)  # offset read
    tl.store(offsets + tl.arange(0, N), total)


@triton.jit
def decode(keys, page, scores, BARRIERS: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    score = tl.zeros((N,), tl.float32)
    for number in range(3):
        tl.store(page + i, tl.load(keys + number * N + i))  # page written
        tl.debug_barrier()
        score += tl.load(page + (N - 1 - i))  # page read
        if BARRIERS:
            tl.debug_barrier()
    tl.store(scores + i, score)


def launch(barriers):
    x, scratch = (torch.randn(1024, device="cuda") for _ in range(2))
    expert, counts = (torch.zeros(256, dtype=torch.int32, device="cuda") for _ in range(2))
    softmax[(1,)](x, scratch, barriers, 256)
    count_tokens[(1,)](expert, counts, torch.empty_like(expert), barriers, 256)
    decode[(1,)](x, scratch, torch.empty_like(x), barriers, 256)


launch(True)
launch(False)
