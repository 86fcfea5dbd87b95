"""Greedy selection: one program an image; every box in turn strikes out later ones."""

import torch
import triton
import triton.language as tl


@triton.jit
def nms_kernel(boxes_ptr, keep_ptr, boxes_batch, boxes_row, count, threshold, BLOCK: tl.constexpr):
    """Keeps the marks of all boxes of one image in registers."""
    batch = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < count
    base = boxes_ptr + batch * boxes_batch
    keep = inside.to(tl.int32)
    for i in range(0, count):
        alive = tl.sum(tl.where(at == i, keep, 0), axis=0)
        if alive == 1:
            own = base + i * boxes_row
            own_x0 = tl.load(own)
            own_y0 = tl.load(own + 1)
            own_x1 = tl.load(own + 2)
            own_y1 = tl.load(own + 3)
            other = base + at * boxes_row
            x0 = tl.load(other, mask=inside, other=0.0)
            y0 = tl.load(other + 1, mask=inside, other=0.0)
            x1 = tl.load(other + 2, mask=inside, other=0.0)
            y1 = tl.load(other + 3, mask=inside, other=0.0)
            wide = tl.maximum(tl.minimum(x1, own_x1) - tl.maximum(x0, own_x0), 0.0)
            high = tl.maximum(tl.minimum(y1, own_y1) - tl.maximum(y0, own_y0), 0.0)
            shared = wide * high
            union = (x1 - x0) * (y1 - y0) + (own_x1 - own_x0) * (own_y1 - own_y0) - shared
            keep = tl.where((at > i) & (shared > threshold * union), 0, keep)
    tl.store(keep_ptr + batch * count + at, keep, mask=inside)


def nms_select(boxes: torch.Tensor, threshold: float) -> torch.Tensor:
    """Marks of boxes, float32[batch, count, 4], best first, with any outer strides."""
    batch, count, _ = boxes.shape
    keep = torch.empty((batch, count), dtype=torch.int32, device=boxes.device)
    nms_kernel[(batch,)](
        boxes, keep, *boxes.stride()[:2], count, threshold, BLOCK=triton.next_power_of_2(count)
    )
    return keep
