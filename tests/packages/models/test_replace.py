"""Modules that compute an operation are found by class and by operators, and replaced."""

from __future__ import annotations

import pytest
import torch

from kernel_gym.packages.models import build, trace
from kernel_gym.packages.models.build import tiny_config
from kernel_gym.packages.models.operations import OPERATIONS
from kernel_gym.packages.models.replace import replace


def replaced_in(load, problem, config):
    """Returns the model, its inputs and what was found for a problem's package."""
    package = load(problem)
    wide = problem in ("swiglu", "geglu", "cross_entropy")
    dtype = torch.bfloat16 if wide else torch.float16
    model = build.build(config, dtype, "eager" if problem == "softmax" else "sdpa")
    inputs = build.inputs_of(model, 2, 8)
    if problem == "cross_entropy":
        inputs["labels"] = inputs["input_ids"]
    if functions := OPERATIONS[problem].functions:
        trace.extend_functions(model, functions)
    traced = trace.trace(model, inputs)
    return inputs, replace(model, traced, problem, package.kernel, package.folder, package.backend)


CASES = {
    ("rms_norm", "llama"): {"LlamaRMSNorm": ("RMSNorm", 5)},
    ("rms_norm", "gemma"): {"GemmaRMSNorm": ("RMSNormZeroCentered", 5)},
    ("layer_norm", "gpt2"): {"LayerNorm": ("LayerNorm", 5)},
    ("rope", "llama"): {"rotary_pos_emb": ("RotaryPosEmb", 2)},
    ("softmax", "llama"): {"LlamaAttention": ("attention", 2)},
    ("cross_entropy", "llama"): {"LlamaForCausalLM": ("causal_lm_loss", 1)},
    ("add_rms_norm", "llama"): {"LlamaDecoderLayer": ("add_and_normalise", 2)},
}


@pytest.mark.parametrize(("problem", "model"), CASES)
def test_what_computes_the_operation_is_replaced_and_put_back(load, problem, model):
    inputs, replaced = replaced_in(load, problem, tiny_config(model))
    sites = {s.kind: (s.replaced_by, len(s.modules)) for s in replaced.sites if s.replaced_by}
    assert sites == CASES[problem, model]
    kernel = load(problem).kernel
    calls, operator = [], kernel.layers.operator
    kernel.layers.operator = lambda *values: calls.append(values) or operator(*values)
    try:
        with torch.no_grad():
            before = _result(replaced.model(**inputs))
            assert calls == []
            with replaced.package() as changed:
                inside = _result(changed(**inputs))
            assert len(calls) >= sum(count for _, count in sites.values())
            calls.clear()
            assert torch.equal(_result(replaced.model(**inputs)), before)
            assert calls == []
    finally:
        kernel.layers.operator = operator
    assert (inside.float() - before.float()).abs().max() < 0.02 * before.abs().max() + 1e-3


def _result(output):
    return output.logits if output.loss is None else output.loss


def test_gated_mlps_keep_their_weights_when_these_are_packed(load):
    for model in ("llama", "phi3"):
        inputs, replaced = replaced_in(load, "swiglu", tiny_config(model))
        (site,) = replaced.sites
        assert site.replaced_by == {"llama": "SwiGLUMLP", "phi3": "SwiGLUMLPPacked"}[model]
        before = {name: value.clone() for name, value in replaced.model.state_dict().items()}
        with torch.no_grad(), replaced.package() as changed:
            inside = changed(**inputs).logits
        after = replaced.model.state_dict()
        assert all(torch.equal(value, after[name]) for name, value in before.items())
        with torch.no_grad():
            right = replaced.model(**inputs).logits
        assert (inside - right).abs().max() < 0.05 * right.abs().max()
    with torch.no_grad():  # a changed weight is seen, though it was packed
        first = next(p for n, p in replaced.model.named_parameters() if "up_proj" in n)
        first.zero_()
        with replaced.package() as changed:
            assert not torch.equal(changed(**inputs).logits, inside)


REASONS = {
    ("geglu", "gemma"): "its activation is",
    ("softmax", "gemma2"): "its eager attention does more than",
    ("rope", "glm"): "it rotates",
    ("add_rms_norm", "olmo2"): "no residual sum",
}


@pytest.mark.parametrize(("problem", "model"), REASONS)
def test_what_computes_something_else_is_left_with_a_reason(load, problem, model):
    _, replaced = replaced_in(load, problem, tiny_config(model))
    assert replaced.sites
    assert not any(site.replaced_by for site in replaced.sites)
    assert not replaced.turn_on
    assert any(REASONS[problem, model] in site.reason for site in replaced.sites), replaced.sites


def test_an_operation_that_is_absent_is_not_found(load):
    _, replaced = replaced_in(load, "layer_norm", tiny_config("llama"))
    assert replaced.sites == []
