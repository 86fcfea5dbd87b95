"""Modules that compute an operation are found by class and by operators, and replaced."""

from __future__ import annotations

import pytest
import torch

from kernel_gym.packages.models.build import fitting, tiny_config
from kernel_gym.packages.models.operations import OPERATIONS
from tests.packages.models.conftest import replaced_in

RESNET = {"embedding_size": 32, "hidden_sizes": [32, 64], "depths": [2, 2], "layer_type": "basic"}
STAGES = {"patch_size": 4, "hidden_sizes": [32, 64], "depths": [1, 1], "num_stages": 2}
SIZES = {"resnet": RESNET, "convnext": STAGES}
"""Sizes of tiny models of images, of which each family has names of its own."""
CASES = {
    ("rms_norm", "llama"): {"LlamaRMSNorm": ("RMSNorm", 5)},
    ("rms_norm", "gemma"): {"GemmaRMSNorm": ("RMSNormZeroCentered", 5)},
    ("layer_norm", "gpt2"): {"LayerNorm": ("LayerNorm", 5)},
    ("rope", "llama"): {"rotary_pos_emb": ("RotaryPosEmb", 2)},
    ("softmax", "llama"): {"LlamaAttention": ("attention", 2)},
    ("cross_entropy", "llama"): {"LlamaForCausalLM": ("causal_lm_loss", 1)},
    ("add_rms_norm", "llama"): {"LlamaDecoderLayer": ("add_and_normalise", 2)},
    ("gather_rows", "llama"): {"Embedding": ("Embedding", 1)},
    ("gather_rows", "opt"): {"Embedding": ("Embedding", 1)},
    ("conv1d", "qwen2_audio_encoder"): {"Conv1d": ("Conv1d", 2)},
    ("conv2d", "resnet"): {"Conv2d": ("Conv2d", 7)},
    ("patch_embed", "vit"): {"Conv2d": ("Conv2d", 1)},
    ("patch_embed", "siglip_vision_model"): {"Conv2d": ("Conv2d", 1)},
    ("patch_embed", "clip_vision_model"): {"Conv2d": ("Conv2d", 1)},
    ("patch_embed", "convnext"): {"Conv2d": ("Conv2d", 2)},
    ("depthwise_conv2d", "convnext"): {"Conv2d": ("Conv2d", 2)},
    ("grouped_conv2d", "resnet"): {"Conv2d": ("Conv2d", 9)},
    ("causal_conv1d", "mamba"): {"causal_conv1d_fn": ("CausalConv1d", 2)},
    ("moe_topk_softmax", "mixtral"): {"MixtralTopKRouter": ("TopKRouterWideWeights", 2)},
    ("moe_topk_softmax", "granitemoe"): {"GraniteMoeTopKRouter": ("TopKRouterWideLogits", 2)},
    ("moe_topk_softmax", "gpt_oss"): {"GptOssTopKRouter": ("TopKRouter", 2)},
    ("gqa_attention", "llama"): {"LlamaAttention": ("attention", 2)},
    ("gqa_attention", "gpt2"): {"GPT2Attention": ("attention", 2)},
    ("cross_attention", "bert"): {"BertSelfAttention": ("attention", 2)},
    ("cross_attention", "vit"): {"ViTAttention": ("attention", 2)},
    ("bitnet_matmul", "llama"): {"BitLinear": ("BitLinear", 14)},
}


@pytest.mark.parametrize(("problem", "model"), CASES)
def test_what_computes_the_operation_is_replaced_and_put_back(load, problem, model):
    values = fitting(model, OPERATIONS[problem].tiny) | SIZES.get(model, {})
    config = tiny_config(model, **values)
    inputs, replaced = replaced_in(load, problem, config)
    sites = {}
    for site in (site for site in replaced.sites if site.replaced_by):
        before = sites.get(site.kind, ("", 0))[1]
        sites[site.kind] = (site.replaced_by, before + len(site.modules))
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
    if getattr(output, "loss", None) is not None:
        return output.loss
    return getattr(output, "logits", output[0])


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


def dilate(model):
    """Gives the first convolution of an audio encoder two steps between taps."""
    model.conv1.padding, model.conv1.dilation = (2,), (2,)


def no_bias(model):
    """Takes the bias from the short convolutions of Mamba."""
    for layer in model.backbone.layers:
        layer.mixer.conv1d.bias = None


def round_on_the_fly(model):
    """Puts a linear layer with ternary values that are not packed into a layer of Llama."""
    from transformers.integrations.bitnet import AutoBitLinear

    for layer in model.model.layers:
        old = layer.mlp.down_proj
        layer.mlp.down_proj = AutoBitLinear(
            *(old.in_features, old.out_features, False), dtype=old.weight.dtype
        )


REASONS = {
    ("geglu", "gemma"): ("its activation is", None),
    ("softmax", "gemma2"): ("its eager attention does more than", None),
    ("rope", "glm"): ("it rotates", None),
    ("add_rms_norm", "olmo2"): ("no residual sum", None),
    ("gather_rows", "gemma"): ("it computes something else", None),
    ("conv1d", "qwen2_audio_encoder"): ("it has 1 groups and a dilation of 2", dilate),
    ("conv1d", "vit"): ("it filters 2 axes, expected 1", None),
    ("conv1d", "resnet"): ("it filters 2 axes, expected 1", None),
    ("conv2d", "vit"): ("its kernel_size is (16, 16), expected (3, 3)", None),
    ("conv2d", "qwen2_audio_encoder"): ("it filters 1 axes, expected 2", None),
    ("patch_embed", "resnet"): ("its stride is (1, 1), expected (3, 3)", None),
    ("depthwise_conv2d", "mobilenet_v2"): ("its padding is (0, 0), expected (1, 1)", None),
    ("depthwise_conv2d", "vit"): ("its stride is (16, 16), expected (1, 1)", None),
    ("grouped_conv2d", "convnext"): ("it has a bias", None),
    ("causal_conv1d", "mamba"): ("bias is NoneType, expected a tensor", no_bias),
    ("moe_topk_softmax", "olmoe"): ("it computes something else", None),
    ("gqa_attention", "gemma2"): ("the model does not support sdpa", None),
    ("cross_attention", "gemma2"): ("the model does not support sdpa", None),
    ("gqa_attention", "bert"): ("it is not causal", None),
    ("bitnet_matmul", "llama"): ("expected packed ternary values", round_on_the_fly),
}


@pytest.mark.parametrize(("problem", "model"), REASONS)
def test_what_computes_something_else_is_left_with_a_reason(load, problem, model):
    reason, change = REASONS[problem, model]
    config = tiny_config(model, **SIZES.get(model, {}))
    _, replaced = replaced_in(load, problem, config, change)
    left = [site for site in replaced.sites if not site.replaced_by]
    assert any(reason in site.reason for site in left), replaced.sites
    if change is not dilate:  # the second convolution is one of the operation
        assert left == replaced.sites
        assert not replaced.turn_on


def test_an_operation_that_is_absent_is_not_found(load):
    _, replaced = replaced_in(load, "layer_norm", tiny_config("llama"))
    assert replaced.sites == []


def test_packed_linear_layers_are_packed_again_when_they_change(load):
    tiny = fitting("llama", OPERATIONS["bitnet_matmul"].tiny)
    inputs, replaced = replaced_in(load, "bitnet_matmul", tiny_config("llama", **tiny))
    with torch.no_grad(), replaced.package() as model:
        before = model(**inputs).logits
        model.model.layers[0].mlp.up_proj.weight.zero_()  # each value becomes -1
        after = model(**inputs).logits
    with torch.no_grad():
        right = replaced.model(**inputs).logits
    assert not torch.equal(before, after)
    assert (after - right).abs().max() < 0.05 * right.abs().max()
