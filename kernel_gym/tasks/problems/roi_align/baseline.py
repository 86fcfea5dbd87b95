"""RoIAlign: one program the cells of one channel of one box."""

import torch
import triton
import triton.language as tl


@triton.jit
def roi_align_kernel(
    x_ptr,
    box_ptr,
    out_ptr,
    x_row,
    box_row,
    channels,
    height,
    width,
    scale,
    cells,
    ratio,
    BLOCK: tl.constexpr,
):
    """Computes all cells, BLOCK at a time in parallel."""
    box = tl.program_id(0).to(tl.int64)
    channel = tl.program_id(1)
    at = tl.arange(0, BLOCK)
    inside = at < cells * cells
    image = tl.load(box_ptr + box * box_row).to(tl.int64)
    x1 = tl.load(box_ptr + box * box_row + 1) * scale - 0.5
    y1 = tl.load(box_ptr + box * box_row + 2) * scale - 0.5
    x2 = tl.load(box_ptr + box * box_row + 3) * scale - 0.5
    y2 = tl.load(box_ptr + box * box_row + 4) * scale - 0.5
    base = x_ptr + (image * channels + channel) * height * x_row
    total = tl.zeros([BLOCK], tl.float32)
    for sample in range(0, ratio * ratio):
        y = y1 + (y2 - y1) * (at // cells + (sample // ratio + 0.5) / ratio) / cells
        x = x1 + (x2 - x1) * (at % cells + (sample % ratio + 0.5) / ratio) / cells
        y = tl.minimum(tl.maximum(y, 0.0), height - 1.0)
        x = tl.minimum(tl.maximum(x, 0.0), width - 1.0)
        top = y.to(tl.int32)
        left = x.to(tl.int32)
        down = y - top
        right = x - left
        bottom = tl.minimum(top + 1, height - 1)
        far = tl.minimum(left + 1, width - 1)
        a = tl.load(base + top * x_row + left, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(base + top * x_row + far, mask=inside, other=0.0).to(tl.float32)
        c = tl.load(base + bottom * x_row + left, mask=inside, other=0.0).to(tl.float32)
        d = tl.load(base + bottom * x_row + far, mask=inside, other=0.0).to(tl.float32)
        total += (1 - down) * ((1 - right) * a + right * b) + down * ((1 - right) * c + right * d)
    out_at = (box * channels + channel) * cells * cells + at
    tl.store(out_ptr + out_at, (total / (ratio * ratio)).to(tl.float16), mask=inside)


def roi_align(
    x: torch.Tensor, box: torch.Tensor, scale: float, cells: int, ratio: int
) -> torch.Tensor:
    """Samples x, float16[batch, channels, height, width], whose rows may be padded."""
    boxes, channels = box.shape[0], x.shape[1]
    out = torch.empty((boxes, channels, cells, cells), dtype=x.dtype, device=x.device)
    roi_align_kernel[(boxes, channels)](
        x,
        box,
        out,
        x.stride(2),
        box.stride(0),
        channels,
        x.shape[2],
        x.shape[3],
        scale,
        cells,
        ratio,
        BLOCK=max(64, triton.next_power_of_2(cells * cells)),
        num_warps=1,
    )
    return out
