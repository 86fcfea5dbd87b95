"""`torch.compile` takes a whole model with the layers of packages as one graph."""

from __future__ import annotations

import importlib
import zipfile
from collections import Counter
from types import MethodType

import pytest
import torch
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.models.llama import modeling_llama as llama
from transformers.models.mixtral import modeling_mixtral as mixtral

from kernel_gym.packages.models.build import build, inputs_of, tiny_config


@pytest.fixture
def installed(write, tmp_path, monkeypatch):
    """Imports the wheel of a problem's package: the variant with the kernel."""

    def load(problem):
        folder = write(tmp_path / problem, f"torch2triton/{problem}")
        (wheel,) = (folder / "dist").glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(tmp_path / "installed")
        monkeypatch.syspath_prepend(str(tmp_path / "installed"))
        return importlib.import_module(f"gpu_kernel_{problem}").layers

    return load


def compiled_whole(model, inputs):
    """Runs a model eagerly and as one graph; returns both outputs and the graph's operators."""
    operators = Counter()

    def count(graph, example):
        operators.update(str(node.target).split(".")[0] for node in graph.graph.nodes)
        return graph.forward

    torch._dynamo.reset()
    with torch.no_grad():
        eager = model(**inputs, use_cache=False)
        whole = torch.compile(model, fullgraph=True, backend=count)(**inputs, use_cache=False)
    return eager, whole, {name: n for name, n in operators.items() if "gpu_kernel" in name}


def test_norms_rotations_and_attention_break_no_graph(installed, monkeypatch):
    norm, rope, softmax = (installed(name) for name in ("rms_norm", "rope", "softmax"))
    monkeypatch.setattr(llama.LlamaRMSNorm, "forward", norm.RMSNorm.forward)
    monkeypatch.setattr(llama, "apply_rotary_pos_emb", rope.RotaryPosEmb())
    AttentionInterface.register("gpu_kernel_softmax", softmax.attention)
    model = build(tiny_config("llama"), torch.float16, "eager")
    model.set_attn_implementation("gpu_kernel_softmax")
    eager, whole, operators = compiled_whole(model, inputs_of(model, 2, 8))
    assert operators == {"gpu_kernel_rms_norm": 5, "gpu_kernel_rope": 4, "gpu_kernel_softmax": 2}
    assert torch.equal(whole.logits, eager.logits)


def test_gated_mlps_and_the_loss_break_no_graph(installed, monkeypatch):
    swiglu, loss = installed("swiglu"), installed("cross_entropy")
    monkeypatch.setattr(llama.LlamaMLP, "forward", swiglu.SwiGLUMLP.forward)
    model = build(tiny_config("llama"), torch.bfloat16, "sdpa")
    model.loss_function = loss.causal_lm_loss
    inputs = inputs_of(model, 2, 8)
    eager, whole, operators = compiled_whole(model, inputs | {"labels": inputs["input_ids"]})
    assert operators == {"gpu_kernel_swiglu": 2, "gpu_kernel_cross_entropy": 1}
    assert torch.allclose(whole.loss, eager.loss, rtol=1e-2)


def test_whole_attention_breaks_no_graph(installed):
    attention, module = installed("gqa_attention").attention, torch.nn.Module().eval()
    q, k = (torch.randn(1, heads, 6, 64).to(torch.bfloat16) for heads in (4, 2))
    right, _ = sdpa_attention_forward(module, q, *[k.repeat_interleave(2, 1)] * 2, None)
    torch._dynamo.reset()
    compiled = torch.compile(attention, fullgraph=True, backend="eager")
    ours, _ = compiled(module, q, k, k, None)
    torch.testing.assert_close(ours, right, rtol=2e-2, atol=2e-2)


def test_embeddings_routers_and_convolutions_break_no_graph(installed):
    ids, states = torch.tensor([[1, 3], [2, 2]]), torch.randn(5, 16).half()
    router = mixtral.MixtralTopKRouter(tiny_config("mixtral", hidden_size=16)).half()
    torch.nn.init.normal_(router.weight)
    signals, images = torch.randn(2, 3, 9).half(), torch.randn(2, 3, 4, 6).half()
    cases = {
        ("gather_rows", "Embedding"): (torch.nn.Embedding(8, 16).half(), ids),
        ("moe_topk_softmax", "TopKRouterWideWeights"): (router, states),
        ("conv1d", "Conv1d"): (torch.nn.Conv1d(3, 4, 3, 2, 1).half(), signals),
        ("conv2d", "Conv2d"): (torch.nn.Conv2d(3, 4, 3, 1, 1, bias=False).half(), images),
        ("patch_embed", "Conv2d"): (torch.nn.Conv2d(3, 4, 2, 2).half(), images),
        ("depthwise_conv2d", "Conv2d"): (torch.nn.Conv2d(3, 3, 3, 1, 1, 1, 3).half(), images),
        ("grouped_conv2d", "Conv2d"): (torch.nn.Conv2d(3, 4, 1, 2, bias=False).half(), images),
    }
    for (problem, layer), (module, x) in cases.items():
        with torch.no_grad():
            right = module(x)
            module.forward = MethodType(getattr(installed(problem), layer).forward, module)
            torch._dynamo.reset()
            ours = torch.compile(module, fullgraph=True, backend="eager")(x)
        pairs = zip(ours, right, strict=True) if isinstance(right, tuple) else [(ours, right)]
        for one, other in pairs:
            torch.testing.assert_close(one, other, rtol=1e-2, atol=1e-2)


def test_an_input_that_is_refused_breaks_no_graph(installed):
    norm = llama.LlamaRMSNorm(16)
    x = torch.randn(3, 16)
    expected = norm(x)
    norm.forward = MethodType(installed("rms_norm").RMSNorm.forward, norm)
    torch._dynamo.reset()
    compiled = torch.compile(norm, fullgraph=True, backend="eager")
    assert torch.allclose(compiled(x), expected)
