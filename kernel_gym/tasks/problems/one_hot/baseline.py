"""One-hot: one program compares a strip of classes with the index of one token."""

import torch
import triton
import triton.language as tl


@triton.jit
def one_hot_kernel(ids_ptr, out_ptr, classes, BLOCK: tl.constexpr):
    """Writes BLOCK classes of one row."""
    token = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    hot = (at == tl.load(ids_ptr + token)).to(tl.int32)
    tl.store(out_ptr + token * classes + at, hot, mask=at < classes)


def one_hot(ids: torch.Tensor, num_classes: int) -> torch.Tensor:
    """One-hot rows of ids, int64[tokens], as int32[tokens, num_classes]."""
    tokens = ids.shape[0]
    out = torch.empty((tokens, num_classes), dtype=torch.int32, device=ids.device)
    block = 64
    one_hot_kernel[(tokens, triton.cdiv(num_classes, block))](
        ids, out, num_classes, BLOCK=block, num_warps=1
    )
    return out
