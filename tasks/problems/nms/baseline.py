"""Non-maximum suppression: one program a batch entry; each kept box in turn strikes later ones."""

import torch
import triton
import triton.language as tl


@triton.jit
def nms_kernel(boxes_ptr, keep_ptr, boxes_batch, boxes_box, count, threshold, BLOCK: tl.constexpr):
    """Marks all boxes as kept, then goes through them; flags live in the output."""
    batch = tl.program_id(0).to(tl.int64)
    boxes = boxes_ptr + batch * boxes_batch
    keep = keep_ptr + batch * count
    lane = tl.arange(0, BLOCK)
    for start in range(0, count, BLOCK):
        tl.store(keep + start + lane, tl.full([BLOCK], 1, tl.uint8), mask=start + lane < count)
    for i in range(count - 1):
        tl.debug_barrier()
        if tl.load(keep + i) != 0:
            box = boxes + i * boxes_box
            x0, y0 = tl.load(box), tl.load(box + 1)
            x1, y1 = tl.load(box + 2), tl.load(box + 3)
            area = (x1 - x0) * (y1 - y0)
            for start in range(i + 1, count, BLOCK):
                at = start + lane
                inside = at < count
                other = boxes + at * boxes_box
                left = tl.load(other, mask=inside, other=0.0)
                top = tl.load(other + 1, mask=inside, other=0.0)
                right = tl.load(other + 2, mask=inside, other=0.0)
                bottom = tl.load(other + 3, mask=inside, other=0.0)
                width = tl.maximum(tl.minimum(x1, right) - tl.maximum(x0, left), 0.0)
                height = tl.maximum(tl.minimum(y1, bottom) - tl.maximum(y0, top), 0.0)
                common = width * height
                union = area + (right - left) * (bottom - top) - common
                struck = inside & (common > threshold * union)
                tl.store(keep + at, tl.zeros([BLOCK], tl.uint8), mask=struck)


def nms(boxes: torch.Tensor, threshold: float) -> torch.Tensor:
    """Flags of the kept among boxes, float32[batch, count, 4], with any outer strides."""
    batch, count, _ = boxes.shape
    keep = torch.empty((batch, count), dtype=torch.uint8, device=boxes.device)
    nms_kernel[(batch,)](boxes, keep, boxes.stride(0), boxes.stride(1), count, threshold, BLOCK=128)
    return keep
