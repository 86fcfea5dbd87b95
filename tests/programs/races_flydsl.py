"""Three kernels in FlyDSL that lack a barrier, and the same ones with it."""

import flydsl.compiler as flyc
import flydsl.expr as fx
import torch

COUNT = 256


@fx.struct
class Shared:
    values: fx.Array[fx.Float32, COUNT, 16]


def shared():
    return fx.SharedAllocator().allocate(Shared).peek().values.ptr


def launch(barriers):
    def barrier():
        if barriers:
            fx.barrier()

    @flyc.kernel
    def softmax(x: fx.Tensor, out: fx.Tensor):
        i, sums = fx.thread_idx.x, shared()
        fx.ptr_store(x[i], sums + fx.Int64(i))  # sum written
        barrier()
        out[i] = fx.ptr_load(sums + fx.Int64(COUNT - 1 - i))  # maximum read

    @flyc.kernel
    def count_tokens(x: fx.Tensor, out: fx.Tensor):
        i, offsets = fx.thread_idx.x, shared()
        fx.ptr_store(x[i], offsets + fx.Int64(i))
        fx.barrier()
        start = fx.ptr_load(offsets + fx.Int64(COUNT - 1 - i))  # offset read
        barrier()
        fx.ptr_store(start + 1.0, offsets + fx.Int64(i))  # counted
        out[i] = start

    @flyc.kernel
    def decode(x: fx.Tensor, out: fx.Tensor):
        i, page = fx.thread_idx.x, shared()
        score = fx.Float32(0.0)
        for number in fx.range_constexpr(3):
            fx.ptr_store(x[i] + float(number), page + fx.Int64(i))  # page written
            fx.barrier()
            score = score + fx.ptr_load(page + fx.Int64(COUNT - 1 - i))  # page read
            barrier()
        out[i] = score

    @flyc.jit
    def all_three(x: fx.Tensor, out: fx.Tensor):
        for kernel in (softmax, count_tokens, decode):
            kernel(x, out).launch(grid=(1,), block=(COUNT,))

    x = torch.randn(COUNT, device="cuda")
    all_three(x, torch.empty_like(x))


launch(True)
launch(False)
