"""A replaced place whose package refuses an input runs its own code, and is counted."""

from __future__ import annotations

from types import MethodType

import pytest
import torch
from torch import nn
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.loss.loss_utils import ForCausalLMLoss
from transformers.models.llama import modeling_llama as llama

from kernel_gym.packages.models import child
from kernel_gym.packages.models.build import tiny_config

HALF, WIDE = torch.float16, torch.float32


def norm(dtype=HALF):
    return llama.LlamaRMSNorm(16).to(dtype)


def layer_norm(dtype=HALF, **values):
    return nn.LayerNorm(16, **values).to(dtype)


def mlp(dtype=torch.bfloat16):
    return llama.LlamaMLP(tiny_config("llama", hidden_size=16)).to(dtype)


NORM, LAYER_NORM, MLP = (
    ("rms_norm", "RMSNorm"),
    ("layer_norm", "LayerNorm"),
    ("swiglu", "SwiGLUMLP"),
)
ROWS = ("gather_rows", "Embedding")
FILTER, PATCHES, DEPTHWISE, GROUPED = (
    (problem, "Conv2d")
    for problem in ("conv2d", "patch_embed", "depthwise_conv2d", "grouped_conv2d")
)
IMAGE = (1, 2, 8, 9)


def padded():
    return nn.Embedding(8, 16, padding_idx=0).half()


def filters(*values, dtype=HALF, **settings):
    return nn.Conv2d(2, 4, *values, **settings).to(dtype)


SIZES = (2, 3, 16)
CALLS = {
    "another type": (NORM, norm(WIDE), SIZES, WIDE, "x is torch.float32, expected torch.float16"),
    "mixed types": (NORM, norm(), SIZES, WIDE, "x is torch.float32, expected torch.float16"),
    "mixed weights": (NORM, norm(WIDE), SIZES, HALF, "weight is torch.float32"),
    "no tokens": (NORM, norm(), (2, 0, 16), HALF, "x is empty"),
    "another shape": (NORM, norm(), (2, 3, 1), HALF, "weight has the shape [16], expected [1]"),
    "a padding row": (ROWS, padded(), (2, 3), torch.int64, "its padding row has no gradient"),
    "no axes": (NORM, norm(), (), HALF, "weight has the shape [16], expected [1]"),
    "no bias": (LAYER_NORM, layer_norm(bias=False), SIZES, HALF, "bias is NoneType"),
    "no weight": (LAYER_NORM, layer_norm(elementwise_affine=False), SIZES, HALF, "is NoneType"),
    "a type of MLPs": (MLP, mlp(WIDE), SIZES, WIDE, "x is torch.float32, expected torch.bfloat16"),
    "a filter's type": (FILTER, filters(3, padding=1, dtype=WIDE), IMAGE, WIDE, "x is torch.f"),
    "one image": (FILTER, filters(3, padding=1), IMAGE[1:], HALF, "x has 3 axes, expected 4"),
    "no zeros around": (FILTER, filters(3), IMAGE, HALF, "its padding is (0, 0), expected (1, 1)"),
    "steps": (FILTER, filters(3, 2, 1), IMAGE, HALF, "its stride is (2, 2), expected (1, 1)"),
    "a cut patch": (PATCHES, filters(4, 4), IMAGE, HALF, "x has the shape [1, 2, 8, 9]"),
    "one cut image": (PATCHES, filters(4, 4), IMAGE[1:], HALF, "x has 3 axes, expected 4"),
    "two sides": (PATCHES, filters((2, 3), (2, 3)), IMAGE, HALF, "its kernel_size is (2, 3)"),
    "two filters": (DEPTHWISE, filters(3, 1, 1, groups=2), IMAGE, HALF, "its out_channels is 4"),
    "all channels": (DEPTHWISE, filters(3, 1, 1), IMAGE, HALF, "its groups is 1, expected 2"),
    "a bias": (GROUPED, filters(3, 1, 1), IMAGE, HALF, "it has a bias"),
    "no middle": (GROUPED, filters(2, 1, 1, bias=False), IMAGE, HALF, "its window of 2"),
    "seven": (GROUPED, filters(7, 2, 3, bias=False), IMAGE, HALF, "its window has 7 pixels"),
    "a wrap": (
        GROUPED,
        filters(3, 1, 1, bias=False, padding_mode="circular"),
        IMAGE,
        HALF,
        "its padding_mode is circular",
    ),
    "an empty expert": (MLP, mlp(), (0, 16), torch.bfloat16, "x is empty"),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_refused_input_runs_the_modules_own_code_and_is_counted(load, name):
    (problem, layer), module, shape, dtype, reason = CALLS[name]
    kernel = load(problem).kernel
    x = torch.randn(shape).abs().to(dtype)
    expected = module(x)
    kernel.inputs.REFUSED.clear()
    module.forward = MethodType(getattr(kernel.layers, layer).forward, module)
    try:
        out = module(x)
    finally:
        del module.forward
    assert torch.equal(out, expected)
    assert out.dtype == expected.dtype
    ((why, count),) = kernel.inputs.REFUSED.items()
    assert reason in why
    assert count == 1


def test_axes_and_strides_that_the_operator_has_not_are_brought_into_its_form(load):
    kernel, module = load("rms_norm").kernel, norm()
    kernel.inputs.REFUSED.clear()
    whole = torch.randn(4, 3, 32).half()
    for x in (whole[..., ::2], whole.transpose(0, 1)[..., :16], whole[0, 0, :16]):
        out = kernel.layers.RMSNorm.forward(module, x)
        torch.testing.assert_close(out, module(x), rtol=2e-3, atol=2e-3)
    assert not kernel.inputs.REFUSED


FILTERS = {
    "conv2d": {"kernel_size": 3, "padding": "same"},
    "patch_embed": {"kernel_size": 4, "stride": 4, "padding": "valid"},
    "depthwise_conv2d": {"kernel_size": 5, "padding": 2, "groups": 4},
    "grouped_conv2d": {"kernel_size": 3, "padding": 4, "dilation": 4, "stride": 3, "groups": 2},
}


@pytest.mark.parametrize("problem", FILTERS)
def test_filters_without_a_bias_and_images_of_another_layout_are_taken(load, problem):
    kernel = load(problem).kernel
    module = nn.Conv2d(4, 4, bias=False, **FILTERS[problem]).half()
    kernel.inputs.REFUSED.clear()
    for size in (8, 12):
        x = torch.randn(2, 4, size, 8).half().to(memory_format=torch.channels_last)
        with torch.inference_mode():
            kernel.layers.Conv2d.forward(module, x)
        out = kernel.layers.Conv2d.forward(module, x.requires_grad_())
        torch.testing.assert_close(out, module(x), rtol=5e-3, atol=5e-3)
        (gradient,) = torch.autograd.grad(out.sum(), x)
        (right,) = torch.autograd.grad(module(x).sum(), x)
        torch.testing.assert_close(gradient, right, rtol=5e-3, atol=5e-3)
    assert not kernel.inputs.REFUSED


def test_other_devices_are_refused(load):
    kernel, there = load("rms_norm").kernel, norm().to("meta")
    x = torch.randn(2, 16).half()
    assert kernel.refusal(x, there.weight, 1e-5) == "weight is on meta, x is on cpu"
    assert kernel.refusal(x.to_sparse(), there.weight, 1e-5).startswith("x is torch.sparse_coo")


def test_rotations_of_other_axes_or_types_run_their_own_code(load):
    kernel = load("rope").kernel
    rotate = kernel.layers.RotaryPosEmb

    class Own(nn.Module):
        def forward(self, *arguments):
            return llama.apply_rotary_pos_emb(*arguments)

    q, table = torch.randn(2, 4, 8, 32), torch.randn(2, 8, 32)
    calls = {
        "x is torch.float32": (q, q, table, table),
        "q has 3 axes": (q[:, 0].half(), q[:, 0].half(), table[:, None, :, :], table[:, None]),
        "its tables are for 3": (q[:1].half(), q[:1].half(), *[torch.randn(3, 8, 32).half()] * 2),
        "its heads are on axis 0": (q[0].half(), q[0].half(), table[0].half(), table[0].half(), 0),
    }
    for reason, call in calls.items():
        kernel.inputs.REFUSED.clear()
        out = rotate.forward(Own(), *call)
        assert all(map(torch.equal, out, llama.apply_rotary_pos_emb(*call)))
        ((why, _),) = kernel.inputs.REFUSED.items()
        assert why.startswith(reason)


def test_the_loss_and_the_softmax_of_another_type_are_those_of_the_model(load):
    loss, softmax = load("cross_entropy").kernel, load("softmax").kernel
    logits, labels = torch.randn(2, 5, 11), torch.randint(0, 11, (2, 5))
    for items in (None, 3):
        arguments = {"labels": labels, "vocab_size": 11, "num_items_in_batch": items}
        expected = ForCausalLMLoss(logits, **arguments)
        assert torch.allclose(loss.layers.causal_lm_loss(logits, **arguments), expected)
    assert sum(loss.inputs.REFUSED.values()) >= 2
    q, module = torch.randn(1, 2, 4, 8), nn.Module().eval()
    module.num_key_value_groups = 1
    out, weights = softmax.layers.attention(module, q, q, q, None, scaling=0.3)
    right, right_weights = llama.eager_attention_forward(module, q, q, q, None, scaling=0.3)
    assert torch.allclose(out, right)
    assert torch.equal(weights, right_weights)
    assert softmax.inputs.REFUSED["x is torch.float32, expected torch.float16"] == 1


@pytest.mark.parametrize("masked", [False, True])
def test_a_refused_softmax_is_that_of_the_models_fused_attention(load, masked):
    attention = load("softmax").kernel.layers.attention
    module = nn.Module().eval()
    module.num_key_value_groups, module.is_causal = 2, True
    q, k, v = torch.randn(2, 4, 6, 8), torch.randn(2, 2, 6, 8), torch.randn(2, 2, 6, 8)
    mask = torch.full((6, 6), -torch.inf).triu(1).expand(2, 1, 6, 6) if masked else None
    eager, weights = attention(module, q, k, v, mask, scaling=0.3)
    out, none = attention(module, q, k, v, mask, scaling=0.3, own=sdpa_attention_forward)
    assert weights.shape == (2, 4, 6, 6)
    assert none is None
    torch.testing.assert_close(out, eager)


def test_scores_of_the_type_of_their_mask_are_refused(load):
    softmax = load("softmax").kernel
    q, module = torch.randn(1, 2, 4, 8).half(), nn.Module().eval()
    out, _ = softmax.layers.attention(module, q, q, q, torch.zeros(1, 1, 4, 4))
    assert out.dtype == torch.float16
    assert softmax.inputs.REFUSED["x is torch.float32, expected torch.float16"] >= 1


def test_a_layer_that_took_the_place_of_a_class_says_why_it_refuses(load, monkeypatch):
    kernel = load("rms_norm").kernel
    monkeypatch.setattr(llama.LlamaRMSNorm, "forward", kernel.layers.RMSNorm.forward)
    with pytest.raises(TypeError, match=r"x is torch\.float32"):
        norm(WIDE)(torch.randn(2, 16))


@pytest.mark.parametrize("problem", ["rms_norm", "add_rms_norm", "cross_entropy"])
def test_a_model_with_parts_in_fp32_keeps_them_and_does_not_fail(load, problem):
    deployment = child.compare(load(problem), tiny_config("mamba"), "cpu", "cpu", decode=False)
    left = [site for site in deployment.sites if not site.replaced_by]
    expected = {"rms_norm": 1, "add_rms_norm": 3, "cross_entropy": 1}[problem]
    assert sum(len(site.modules) for site in left) == expected
    assert not deployment.failure
    assert deployment.refusals == ()
    if problem == "rms_norm":
        assert deployment.replaced == 2
        assert deployment.parity
        assert "x is torch.float32, expected torch.float16" in left[0].reason


def test_calls_that_change_after_the_trace_are_counted_in_the_report(load, monkeypatch):
    """The final norm turns to fp32 after the model was traced, as under a user's hook."""
    original = child.replace

    def then_widen(model, *arguments):
        replaced = original(model, *arguments)
        model.model.norm.register_forward_pre_hook(lambda _, given: (given[0].float(),))
        model.lm_head.register_forward_pre_hook(lambda head, x: (x[0].to(head.weight.dtype),))
        return replaced

    monkeypatch.setattr(child, "replace", then_widen)
    deployment = child.compare(load("rms_norm"), tiny_config("llama"), "cpu", "cpu", decode=False)
    assert [(one.phase, one.calls) for one in deployment.refusals] == [
        ("gradients", 1),
        ("prefill", 1),
    ]
    assert "x is torch.float32" in deployment.refusals[0].reason
    assert not deployment.failure
    assert deployment.phases[0].calls == 4
