"""Row-wise Adagrad: one program a row, a pass for the mean square and one for the update."""

import torch
import triton
import triton.language as tl


@triton.jit
def rowwise_adagrad_kernel(
    table_ptr,
    grad_ptr,
    state_ptr,
    new_table_ptr,
    new_state_ptr,
    table_stride,
    grad_stride,
    dim,
    lr,
    eps,
    BLOCK: tl.constexpr,
):
    """Updates one row."""
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, BLOCK)
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, dim, BLOCK):
        at = start + lane
        grad = tl.load(grad_ptr + row * grad_stride + at, mask=at < dim, other=0.0).to(tl.float32)
        squares += grad * grad
    state = tl.load(state_ptr + row) + tl.sum(squares, axis=0) / dim
    tl.store(new_state_ptr + row, state)
    step = lr / (tl.sqrt(state) + eps)

    for start in range(0, dim, BLOCK):
        at = start + lane
        inside = at < dim
        grad = tl.load(grad_ptr + row * grad_stride + at, mask=inside, other=0.0).to(tl.float32)
        table = tl.load(table_ptr + row * table_stride + at, mask=inside, other=0.0)
        out = table.to(tl.float32) - step * grad
        tl.store(new_table_ptr + row * dim + at, out.to(tl.float16), mask=inside)


def rowwise_adagrad_step(
    table: torch.Tensor, grad: torch.Tensor, state: torch.Tensor, lr: float, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """New table, float16[rows, dim], and state, float32[rows]; inputs have any row strides."""
    rows, dim = table.shape
    new_table = torch.empty((rows, dim), dtype=table.dtype, device=table.device)
    new_state = torch.empty((rows,), dtype=state.dtype, device=table.device)
    rowwise_adagrad_kernel[(rows,)](
        table,
        grad,
        state,
        new_table,
        new_state,
        table.stride(0),
        grad.stride(0),
        dim,
        lr,
        eps,
        BLOCK=128,
    )
    return new_table, new_state
