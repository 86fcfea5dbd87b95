"""Linear recurrence: one program walks a block of channels through time."""

import torch
import triton
import triton.language as tl


@triton.jit
def linear_scan_kernel(
    a_ptr,
    x_ptr,
    start_ptr,
    h_ptr,
    a_batch,
    a_time,
    x_batch,
    x_time,
    start_batch,
    time,
    channels,
    BLOCK: tl.constexpr,
):
    """Advances BLOCK channels of one batch entry step by step."""
    batch = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < channels
    h = tl.load(start_ptr + batch * start_batch + at, mask=inside, other=0.0).to(tl.float32)
    for t in range(time):
        a = tl.load(a_ptr + batch * a_batch + t * a_time + at, mask=inside, other=0.0)
        x = tl.load(x_ptr + batch * x_batch + t * x_time + at, mask=inside, other=0.0)
        h = a.to(tl.float32) * h + x.to(tl.float32)
        tl.store(h_ptr + (batch * time + t) * channels + at, h.to(tl.float16), mask=inside)


def linear_scan(a: torch.Tensor, x: torch.Tensor, start: torch.Tensor) -> torch.Tensor:
    """Scans a and x, float16[batch, time, channels], with any outer strides."""
    batch, time, channels = x.shape
    h = torch.empty((batch, time, channels), dtype=x.dtype, device=x.device)
    block = 256
    linear_scan_kernel[(batch, triton.cdiv(channels, block))](
        a,
        x,
        start,
        h,
        *a.stride()[:2],
        *x.stride()[:2],
        start.stride(0),
        time,
        channels,
        BLOCK=block,
    )
    return h
