"""Embedding backward: a kernel writes zeros, another adds one token a program by atomics."""

import torch
import triton
import triton.language as tl


@triton.jit
def zero_kernel(out_ptr, count, BLOCK: tl.constexpr):
    """Writes zeros to BLOCK elements."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.zeros([BLOCK], tl.float32), mask=at < count)


@triton.jit
def add_kernel(grad_ptr, ids_ptr, out_ptr, grad_row, dim, padding, BLOCK: tl.constexpr):
    """Adds BLOCK elements of one token's gradient to its word's row."""
    token = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    word = tl.load(ids_ptr + token)
    if word != padding:
        grad = tl.load(grad_ptr + token * grad_row + at, mask=at < dim, other=0.0).to(tl.float32)
        tl.atomic_add(out_ptr + word * dim + at, grad, mask=at < dim, sem="relaxed")


def embedding_backward(
    grad: torch.Tensor, ids: torch.Tensor, vocab: int, padding: int
) -> torch.Tensor:
    """Sums for grad, float16[tokens, dim] with any row stride."""
    tokens, dim = grad.shape
    out = torch.empty((vocab, dim), dtype=torch.float32, device=grad.device)
    count = vocab * dim
    zero_kernel[(triton.cdiv(count, 1024),)](out, count, BLOCK=1024)
    grid = (tokens, triton.cdiv(dim, 512))
    add_kernel[grid](grad, ids, out, grad.stride(0), dim, padding, BLOCK=512)
    return out
