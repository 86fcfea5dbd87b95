"""Split of packed projections: one launch an output, one program a head of a token."""

import torch
import triton
import triton.language as tl


@triton.jit
def take_head_kernel(
    packed_ptr, out_ptr, packed_stride, first, tokens, head_dim, BLOCK: tl.constexpr
):
    """Copies one head of one token; `first` is where the output's heads begin in a row."""
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1).to(tl.int64)
    at = tl.arange(0, BLOCK)
    source = packed_ptr + token * packed_stride + first + head * head_dim + at
    values = tl.load(source, mask=at < head_dim)
    tl.store(out_ptr + (head * tokens + token) * head_dim + at, values, mask=at < head_dim)


def qkv_split(
    packed: torch.Tensor, num_heads: int, num_kv_heads: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Splits packed, float16[tokens, width], with any row stride."""
    tokens, width = packed.shape
    head_dim = width // (num_heads + 2 * num_kv_heads)
    outputs = []
    first = 0
    for heads in (num_heads, num_kv_heads, num_kv_heads):
        out = torch.empty((heads, tokens, head_dim), dtype=packed.dtype, device=packed.device)
        take_head_kernel[(tokens, heads)](
            packed,
            out,
            packed.stride(0),
            first,
            tokens,
            head_dim,
            BLOCK=triton.next_power_of_2(head_dim),
            num_warps=1,
        )
        first += heads * head_dim
        outputs.append(out)
    return tuple(outputs)
