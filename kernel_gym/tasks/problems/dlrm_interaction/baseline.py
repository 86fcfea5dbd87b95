"""Feature interaction: one program a sample computes the whole square of products."""

import torch
import triton
import triton.language as tl


@triton.jit
def interaction_kernel(
    dense_ptr,
    sparse_ptr,
    out_ptr,
    dense_row,
    sparse_batch,
    sparse_row,
    tables,
    width,
    FEATURES: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Multiplies the features of one sample with their transpose and keeps the lower triangle."""
    batch = tl.program_id(0).to(tl.int64)
    feature = tl.arange(0, FEATURES)
    place = tl.arange(0, WIDTH)
    dense = tl.load(dense_ptr + batch * dense_row + place, mask=place < width, other=0.0)
    row = feature[:, None] - 1
    sparse = tl.load(
        sparse_ptr + batch * sparse_batch + row * sparse_row + place[None, :],
        mask=(row >= 0) & (row < tables) & (place[None, :] < width),
        other=0.0,
    )
    features = tl.where(feature[:, None] == 0, dense[None, :], sparse)
    products = tl.dot(features, tl.trans(features))

    size = width + tables * (tables + 1) // 2
    tl.store(out_ptr + batch * size + place, dense, mask=place < width)
    i = feature[:, None]
    j = feature[None, :]
    at = batch * size + width + i * (i - 1) // 2 + j
    tl.store(out_ptr + at, products.to(tl.float16), mask=(i > j) & (i <= tables))


def dlrm_interaction(dense: torch.Tensor, sparse: torch.Tensor) -> torch.Tensor:
    """Interaction of dense, float16[batch, width], and sparse, float16[batch, tables, width]."""
    batch, tables, width = sparse.shape
    size = width + tables * (tables + 1) // 2
    out = torch.empty((batch, size), dtype=dense.dtype, device=dense.device)
    interaction_kernel[(batch,)](
        dense,
        sparse,
        out,
        dense.stride(0),
        *sparse.stride()[:2],
        tables,
        width,
        FEATURES=max(16, triton.next_power_of_2(tables + 1)),
        WIDTH=max(16, triton.next_power_of_2(width)),
        num_warps=4,
        num_stages=1,
    )
    return out
