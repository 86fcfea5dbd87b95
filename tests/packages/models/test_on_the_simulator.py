"""Kernels of operations run in whole models on the simulated GPU, and the models stay right."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.models.mamba import modeling_mamba

from benchmarks.deployment.packages import SOURCES
from kernel_gym.packages.models.build import tiny_config
from tests.packages.models.conftest import replaced_in

SCRIPT = """
import torch, transformers, json, sys
from pathlib import Path
from kernel_gym.packages.models import child
from kernel_gym.packages.models.build import fitting, tiny_config

transformers.logging.set_verbosity_error()
small = {"num_hidden_layers": 1, "encoder_layers": 1, "vocab_size": 64, "image_size": 32}
small |= {"hidden_sizes": [32, 64], "depths": [1, 1], "num_stages": 2, "embedding_size": 32}
rows = []
for problem, model in json.loads(sys.argv[2]):
    package = child.load(Path(sys.argv[1]) / problem, "cuda")
    config = tiny_config(model, **fitting(model, small | package.operation.tiny))
    deployment = child.compare(package, config, "cuda", "sim:gfx942", decode=False)
    rows.append(deployment.model_dump(mode="json") | {"parity": deployment.parity})
print(json.dumps(rows))
"""
CHEAP = {"gather_rows": "llama", "moe_topk_softmax": "mixtral", "gqa_attention": "llama"}
IMAGES = {"patch_embed": "convnext", "depthwise_conv2d": "convnext"}
OTHERS = {
    "conv2d": "resnet",
    "grouped_conv2d": "resnet",
    "conv1d": "qwen2_audio_encoder",
    "causal_conv1d": "mamba",
    "bitnet_matmul": "llama",
}


@pytest.mark.parametrize(
    "models",
    [CHEAP, IMAGES, pytest.param(OTHERS, marks=pytest.mark.sweep)],
    ids=["cheap", "images", "others"],
)
def test_kernels_run_in_models_that_stay_right(tmp_path, write, models):
    for problem in models:
        mode, path = SOURCES[problem]
        source = Path(path).read_text(encoding="utf-8") if path else ""
        write(tmp_path / problem, f"{mode}/{problem}", source)
    for problem, row in zip(models, compared(tmp_path, models), strict=True):
        assert row["parity"], row
        (phase,) = row["phases"]
        assert phase["calls"] >= 1, row
        assert phase["kernel_calls"] == phase["calls"], phase
        assert row["refusals"] == [], problem


def test_a_kernel_that_was_not_faster_leaves_the_models_own_code(tmp_path, write):
    write(tmp_path / "layer_norm", "torch2triton/layer_norm", low=0.9)
    (row,) = compared(tmp_path, {"layer_norm": "gpt2"})
    (phase,) = row["phases"]
    assert (phase["calls"], phase["gain"]) == (0, pytest.approx(1.0))
    assert {one["reason"] for one in row["refusals"]} == {
        "the nearest measured workload was not surely faster"
    }


def test_a_norm_in_one_call_of_pytorch_replaces_the_models_own_code(tmp_path, write):
    """Models write it as eight operators, so that it is faster also without the kernel."""
    write(tmp_path / "rms_norm", "torch2triton/rms_norm", low=0.9)
    (row,) = compared(tmp_path, {"rms_norm": "llama"})
    (phase,) = row["phases"]
    assert (phase["calls"], phase["kernel_calls"], row["refusals"]) == (3, 0, [])
    assert row["parity"]
    assert phase["gain"] > 1.1


def compared(folder, models):
    """Rows of packages in a folder, each in a model on the simulated GPU."""
    command = [sys.executable, "-m", "kernel_gym", "sim", "--", sys.executable, "-c", SCRIPT]
    done = subprocess.run(
        [*command, str(folder), json.dumps([*models.items()])],
        capture_output=True,
        text=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[0])


def test_attention_that_runs_plain_pytorch_copies_nothing(load, monkeypatch):
    layers, given = load("gqa_attention").kernel.layers, []
    operator = layers.operator
    monkeypatch.setattr(layers, "operator", lambda *call: given.append(call) or operator(*call))
    q, k = (torch.randn(1, 6, heads, 64).to(torch.bfloat16).transpose(1, 2) for heads in (4, 2))
    for kernel_runs, contiguous in ((False, False), (True, True)):
        monkeypatch.setattr(layers, "gains", lambda *call, runs=kernel_runs: runs)
        layers.attention(torch.nn.Module().eval(), q, k, k, None)
        assert [tensor.is_contiguous() for tensor in given.pop()[:3]] == [contiguous] * 3


def test_attention_calls_that_are_not_causal_run_the_models_own_code(load):
    kernel = load("gqa_attention").kernel
    module = torch.nn.Module().eval()
    module.num_key_value_groups = 2
    q, k = (torch.randn(1, heads, 6, 64).to(torch.bfloat16) for heads in (4, 2))
    mask = torch.ones(1, 1, 6, 6, dtype=torch.bool).tril(-1)
    calls = {
        "": ((q, k, k, None), {}),
        "it has keys of earlier calls": ((q[:, :, :1], k, k, None), {}),
        "it has a mask, or keys of earlier calls": ((q, k, k, mask), {}),
        "it is not causal": ((q, k, k, None), {"is_causal": False}),
        "it drops weights": ((q, k, k, None), {"dropout": 0.5}),
        "it takes position_bias": ((q, k, k, None), {"position_bias": torch.ones(1, 4, 6, 6)}),
        "q is torch.float32, expected torch.bfloat16": (
            (q.float(), k.float(), k.float(), None),
            {},
        ),
        "v has the shape [1, 2, 6, 32], expected [1, 2, 6, 64]": ((q, k, k[..., :32], None), {}),
    }
    for reason, (arguments, named) in calls.items():
        kernel.inputs.REFUSED.clear()
        torch.manual_seed(0)
        out, _ = kernel.layers.attention(module, *arguments, scaling=0.2, **named)
        torch.manual_seed(0)
        right, _ = sdpa_attention_forward(module, *arguments, scaling=0.2, **named)
        torch.testing.assert_close(out, right, rtol=2e-2, atol=2e-2)
        assert [*kernel.inputs.REFUSED] == ([reason] if reason else [])


def test_short_convolutions_with_another_activation_run_their_own_code(load):
    replaced_in(load, "causal_conv1d", tiny_config("mamba", num_hidden_layers=1))
    kernel, function = load("causal_conv1d").kernel, modeling_mamba.causal_conv1d_fn
    x, weight, bias = torch.randn(1, 8, 5).half(), torch.randn(8, 4).half(), torch.randn(8).half()
    for activation in (None, "gelu"):
        kernel.inputs.REFUSED.clear()
        out = kernel.layers.CausalConv1d.forward(function, x, weight, bias, activation)
        assert torch.equal(out, type(function).forward(function, x, weight, bias, activation))
        assert [*kernel.inputs.REFUSED] == [f"its activation is {activation}, expected silu"]
