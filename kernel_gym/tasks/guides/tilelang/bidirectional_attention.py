"""Attention of padded sequences in TileLang, with a running softmax over blocks of keys."""

import tilelang
import tilelang.language as T
import torch

BLOCK, FULL_ROW = 64, T.GemmWarpPolicy.FullRow


def _strides(of):
    """Returns the strides of a tensor whose rows may be padded."""
    return (*(T.dynamic(f"{of}_{axis}") for axis in ("batch", "head", "row")), 1)


@tilelang.jit
def attention_kernel(width):
    """Builds the kernel for all shapes with one width of heads."""
    batch, heads, seq = T.dynamic("batch"), T.dynamic("heads"), T.dynamic("seq")
    shape, of_q, of_k, of_v = (batch, heads, seq, width), *map(_strides, ("q", "k", "v"))

    @T.prim_func
    def main(
        q: T.StridedTensor(shape, of_q, "float16"),
        k: T.StridedTensor(shape, of_k, "float16"),
        v: T.StridedTensor(shape, of_v, "float16"),
        length: T.Tensor((batch,), "int32"),
        out: T.Tensor(shape, "float16"),
        scale: T.float32,
    ):
        with T.Kernel(T.ceildiv(seq, BLOCK), heads, batch, threads=128) as (block, head, one):
            queries = T.alloc_shared((BLOCK, width), "float16")
            keys = T.alloc_shared((BLOCK, width), "float16")
            values = T.alloc_shared((BLOCK, width), "float16")
            weights = T.alloc_shared((BLOCK, BLOCK), "float16")
            scores = T.alloc_fragment((BLOCK, BLOCK), "float32")
            total = T.alloc_fragment((BLOCK, width), "float32")
            top = T.alloc_fragment((BLOCK,), "float32")
            before = T.alloc_fragment((BLOCK,), "float32")
            part = T.alloc_fragment((BLOCK,), "float32")
            norm = T.alloc_fragment((BLOCK,), "float32")
            for i, j in T.Parallel(BLOCK, width):
                queries[i, j] = q[one, head, T.min(block * BLOCK + i, seq - 1), j]
            T.clear(total)
            T.clear(norm)
            T.fill(top, -1e30)
            for step in T.serial(T.ceildiv(length[one], BLOCK)):
                for i, j in T.Parallel(BLOCK, width):  # without a branch, loads overlap
                    keys[i, j] = k[one, head, T.min(step * BLOCK + i, seq - 1), j]
                    values[i, j] = v[one, head, T.min(step * BLOCK + i, seq - 1), j]
                T.clear(scores)
                T.gemm(queries, keys, scores, transpose_B=True, policy=FULL_ROW)
                for i, j in T.Parallel(BLOCK, BLOCK):
                    inside = step * BLOCK + j < length[one]
                    scores[i, j] = T.if_then_else(inside, scores[i, j] * scale, -1e30)
                T.copy(top, before)
                T.reduce_max(scores, top, dim=1, clear=False)
                for i, j in T.Parallel(BLOCK, BLOCK):
                    scores[i, j] = T.exp(scores[i, j] - top[i])
                T.reduce_sum(scores, part, dim=1)
                for i in T.Parallel(BLOCK):
                    norm[i] = norm[i] * T.exp(before[i] - top[i]) + part[i]
                for i, j in T.Parallel(BLOCK, width):
                    total[i, j] = total[i, j] * T.exp(before[i] - top[i])
                T.copy(scores, weights)
                T.gemm(weights, values, total, policy=FULL_ROW)
            for i, j in T.Parallel(BLOCK, width):
                total[i, j] = total[i, j] / norm[i]
            T.copy(total, out[one, head, block * BLOCK, 0])

    return main


def bidirectional_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, length: torch.Tensor, scale: float
) -> torch.Tensor:
    """Attention of float16[batch, heads, seq, head_dim] tensors over the first length[b] keys."""
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    attention_kernel(q.shape[3])(q, k, v, length, out, scale)
    return out
