"""Runs a small Llama with and without a package, and prints parity and throughput.

It needs PyTorch, transformers and the package's wheel, and no kernel-gym (docs/deploy.md). Without
the GPU that judged the kernel, the package runs plain PyTorch, and the program says why.

Exit code 1: the model is not right with the package.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from gpu_kernel_add_rms_norm import layers, reason
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
PROMPTS, REQUESTS, PROMPT_TOKENS, STEPS, PAIRS = 8, 2, 32, 64, 6
MAX_RMS_FACTOR = 2.0
"""The limit of `kernel-gym deploy`: the package's error over the original's."""
GREEDY = {"max_new_tokens": STEPS, "min_new_tokens": STEPS, "do_sample": False, "pad_token_id": 0}
CONFIG = LlamaConfig(
    hidden_size=256,
    intermediate_size=512,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    vocab_size=256,
    max_position_embeddings=256,
)


def fused(self: LlamaDecoderLayer, hidden_states: Tensor, **arguments: object) -> Tensor:
    """Runs a decoder layer in which the package adds the residual and normalises."""
    attended, _ = self.self_attn(hidden_states=self.input_layernorm(hidden_states), **arguments)
    norm = self.post_attention_layernorm
    normalised, total = layers.add_and_normalise(norm, attended, hidden_states)
    return total + self.mlp(normalised)


@contextmanager
def package() -> Iterator[None]:
    """Puts the package into all decoder layers, and puts them back."""
    original = LlamaDecoderLayer.forward
    LlamaDecoderLayer.forward = fused
    try:
        yield
    finally:
        LlamaDecoderLayer.forward = original


def decisive(truth: LlamaForCausalLM) -> Tensor:
    """Returns the prompts whose greedy tokens win by the widest margins in fp64."""
    ids = torch.randint(3, CONFIG.vocab_size, (PROMPTS, PROMPT_TOKENS))
    asked = {"output_logits": True, "return_dict_in_generate": True}
    result = truth.generate(ids, attention_mask=torch.ones_like(ids), **GREEDY, **asked)
    best = torch.stack(result.logits).topk(2, dim=-1).values
    return ids[(best[..., 0] - best[..., 1]).amin(0).topk(REQUESTS).indices]


def decode(model: LlamaForCausalLM, ids: Tensor) -> tuple[Tensor, float]:
    """Returns greedy tokens and the seconds that they took."""
    if DEVICE == "cpu":
        began = time.perf_counter()
        tokens = model.generate(ids, attention_mask=torch.ones_like(ids), **GREEDY)
        return tokens, time.perf_counter() - began
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    tokens = model.generate(ids, attention_mask=torch.ones_like(ids), **GREEDY)
    end.record()
    end.synchronize()
    return tokens, begin.elapsed_time(end) / 1e3


def error(logits: Tensor, right: Tensor) -> float:
    """Returns the root mean square of the errors over that of the right values."""
    return ((logits.double().cpu() - right).square().mean() / right.square().mean()).sqrt().item()


@torch.no_grad()
def main() -> int:
    """Compares, prints, and returns the exit code."""
    torch.manual_seed(0)
    model = LlamaForCausalLM(CONFIG).half().eval()
    truth = LlamaForCausalLM(CONFIG).double().eval()
    truth.load_state_dict(model.state_dict())
    ids = decisive(truth)
    right = truth(ids).logits
    model, ids = model.to(DEVICE), ids.to(DEVICE)

    row = torch.ones(1, CONFIG.hidden_size, dtype=torch.float16, device=DEVICE)
    why = reason(row, row, row[0], CONFIG.rms_norm_eps)
    print(f"add_rms_norm on {DEVICE}: {f'plain PyTorch: {why}' if why else 'the kernel runs'}")
    plain, _ = decode(model, ids)
    before = error(model(ids).logits, right)
    with package():
        ours, _ = decode(model, ids)
        after = error(model(ids).logits, right)
    print(f"logits: error {after:.2e} of the values, {before:.2e} without the package")
    equal = (plain == ours).all(0)[PROMPT_TOKENS:].int().cumprod(0).sum().item()
    print(f"tokens: {equal} of {STEPS} equal in {REQUESTS} sequences")

    pairs = []
    for _ in range(PAIRS):
        _, seconds = decode(model, ids)
        with package():
            pairs.append((seconds, decode(model, ids)[1]))
    gains = sorted(a / b for a, b in pairs)
    rates = [REQUESTS * STEPS / statistics.median(side) for side in zip(*pairs, strict=True)]
    print(
        f"throughput: {rates[1]:.0f} tokens/s, {rates[0]:.0f} without the package: gain "
        f"{statistics.median(gains):.3f} ({gains[0]:.3f} to {gains[-1]:.3f} of {PAIRS} pairs)"
    )
    parity = after <= MAX_RMS_FACTOR * before and equal == STEPS
    print(f"parity: {'yes' if parity else 'NO'}")
    return 0 if parity else 1


if __name__ == "__main__":
    sys.exit(main())
