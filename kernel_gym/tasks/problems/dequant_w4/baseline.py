"""AWQ unpacking: one program a strip of one row, each lane a column of its own."""

import torch
import triton
import triton.language as tl


@triton.jit
def dequant_w4_kernel(
    qweight_ptr,
    scales_ptr,
    qzeros_ptr,
    out_ptr,
    qweight_row,
    scales_row,
    qzeros_row,
    cols,
    BLOCK: tl.constexpr,
):
    """Unpacks BLOCK columns of one row."""
    row = tl.program_id(0).to(tl.int64)
    group = row // 128
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < cols
    place = (at % 8) // 2 + 4 * (at % 2)
    words = tl.load(qweight_ptr + row * qweight_row + at // 8, mask=inside, other=0)
    zero_words = tl.load(qzeros_ptr + group * qzeros_row + at // 8, mask=inside, other=0)
    scales = tl.load(scales_ptr + group * scales_row + at, mask=inside, other=0.0)
    centred = ((words >> (4 * place)) & 15) - ((zero_words >> (4 * place)) & 15)
    out = centred.to(tl.float32) * scales.to(tl.float32)
    tl.store(out_ptr + row * cols + at, out.to(tl.float16), mask=inside)


def dequant_w4(qweight: torch.Tensor, scales: torch.Tensor, qzeros: torch.Tensor) -> torch.Tensor:
    """Weight, float16[rows, cols], of qweight, int32[rows, cols / 8], with any row strides."""
    rows, cols = qweight.shape[0], scales.shape[1]
    out = torch.empty((rows, cols), dtype=scales.dtype, device=scales.device)
    block = 256
    dequant_w4_kernel[(rows, triton.cdiv(cols, block))](
        qweight,
        scales,
        qzeros,
        out,
        qweight.stride(0),
        scales.stride(0),
        qzeros.stride(0),
        cols,
        BLOCK=block,
    )
    return out
