"""Penalties: one program a strip of one row counts its tokens in the whole history."""

import torch
import triton
import triton.language as tl


@triton.jit
def occurrences(history_ptr, length, first, BLOCK: tl.constexpr, PART: tl.constexpr):
    """How often each token of the strip from `first` on is in a history."""
    counts = tl.zeros([BLOCK], tl.int32)
    for start in range(0, length, PART):
        at = start + tl.arange(0, PART)
        bin_at = tl.load(history_ptr + at, mask=at < length, other=-1) - first
        mine = (bin_at >= 0) & (bin_at < BLOCK) & (at < length)
        counts += tl.histogram(bin_at, BLOCK, mask=mine)
    return counts


@triton.jit
def penalties_kernel(
    logits_ptr,
    prompt_ptr,
    output_ptr,
    repetition_ptr,
    frequency_ptr,
    presence_ptr,
    out_ptr,
    logits_row,
    prompt_row,
    output_row,
    vocab,
    prompt_length,
    output_length,
    BLOCK: tl.constexpr,
    PART: tl.constexpr,
):
    """Penalises BLOCK logits of one row."""
    row = tl.program_id(0).to(tl.int64)
    first = tl.program_id(1) * BLOCK
    token = first + tl.arange(0, BLOCK)
    inside = token < vocab
    before = occurrences(prompt_ptr + row * prompt_row, prompt_length, first, BLOCK, PART)
    counts = occurrences(output_ptr + row * output_row, output_length, first, BLOCK, PART)
    x = tl.load(logits_ptr + row * logits_row + token, mask=inside, other=0.0)
    rate = tl.load(repetition_ptr + row)
    scaled = tl.where(x > 0, x / rate, x * rate)
    x = tl.where(before + counts != 0, scaled, x)  # Triton 3.8 takes a lone histogram > 0 for false
    x -= tl.load(frequency_ptr + row) * counts.to(tl.float32)
    x -= tl.where(counts != 0, tl.load(presence_ptr + row), 0.0)
    tl.store(out_ptr + row * vocab + token, x, mask=inside)


def logit_penalties(
    logits: torch.Tensor,
    prompt: torch.Tensor,
    output: torch.Tensor,
    repetition: torch.Tensor,
    frequency: torch.Tensor,
    presence: torch.Tensor,
) -> torch.Tensor:
    """Penalised logits, float32[rows, vocab]; logits and histories with any row strides."""
    rows, vocab = logits.shape
    out = torch.empty((rows, vocab), dtype=logits.dtype, device=logits.device)
    block = 512
    penalties_kernel[(rows, triton.cdiv(vocab, block))](
        logits,
        prompt,
        output,
        repetition,
        frequency,
        presence,
        out,
        logits.stride(0),
        prompt.stride(0),
        output.stride(0),
        vocab,
        prompt.shape[1],
        output.shape[1],
        BLOCK=block,
        PART=128,
    )
    return out
