"""Viterbi: one program a batch entry; best predecessors go to scratch and are followed back."""

import torch
import triton
import triton.language as tl


@triton.jit
def viterbi_kernel(
    emission_ptr,
    transition_ptr,
    origin_ptr,
    path_ptr,
    score_ptr,
    emission_batch,
    emission_time,
    transition_stride,
    time,
    states,
    BLOCK: tl.constexpr,
):
    """Walks forward over all pairs of states, then back over the predecessors."""
    batch = tl.program_id(0).to(tl.int64)
    emission = emission_ptr + batch * emission_batch
    origins = origin_ptr + batch * time * states
    here = tl.arange(0, BLOCK)
    there = tl.arange(0, BLOCK)
    low = float("-inf")
    pairs = (here[:, None] < states) & (there[None, :] < states)
    step = tl.load(
        transition_ptr + here[:, None] * transition_stride + there[None, :], mask=pairs, other=low
    )

    score = tl.load(emission + there, mask=there < states, other=low)
    for t in range(1, time):
        sums = score[:, None] + step
        best = tl.max(sums, axis=0)
        first = tl.where(sums == best[None, :], here[:, None], BLOCK)
        tl.store(origins + t * states + there, tl.min(first, axis=0), mask=there < states)
        emitted = tl.load(emission + t * emission_time + there, mask=there < states, other=low)
        score = best + emitted

    total = tl.max(score, axis=0)
    state = tl.min(tl.where(score == total, there, BLOCK), axis=0)
    tl.store(score_ptr + batch, total)
    tl.debug_barrier()
    path = path_ptr + batch * time
    for i in range(time - 1):
        t = time - 1 - i
        tl.store(path + t, state.to(tl.int64))
        state = tl.load(origins + t * states + state)
    tl.store(path, state.to(tl.int64))


def viterbi(emission: torch.Tensor, transition: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Best paths through emission, float32[batch, time, states], with any outer strides."""
    batch, time, states = emission.shape
    path = torch.empty((batch, time), dtype=torch.int64, device=emission.device)
    score = torch.empty((batch,), dtype=torch.float32, device=emission.device)
    origin = torch.empty((batch, time, states), dtype=torch.int32, device=emission.device)
    viterbi_kernel[(batch,)](
        emission,
        transition,
        origin,
        path,
        score,
        emission.stride(0),
        emission.stride(1),
        transition.stride(0),
        time,
        states,
        BLOCK=triton.next_power_of_2(states),
    )
    return path, score
