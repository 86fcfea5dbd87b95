"""Attention without a mask: encoders, and decoders that add one token to a cache."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from kernel_gym.packages.models import measure
from kernel_gym.packages.models.build import tiny_config
from tests.packages.models.conftest import replaced_in

PROBLEM = "cross_attention"
SCRIPT = """
import torch
import sys
from pathlib import Path
from kernel_gym.packages.models import child

package = child.load(Path(sys.argv[1]), "cuda").kernel
torch.manual_seed(0)
q, k, v = (torch.randn(2, n, m, 64).half() for n, m in ((4, 1), (2, 19), (2, 19)))
assert package.gains(q.view(2, 2, 2, 64).cuda(), k.cuda(), v.cuda(), 0.125)
module = torch.nn.Module().eval()
out, _ = package.layers.attention(module, q.cuda(), k.cuda(), v.cuda(), None, scaling=0.125)
right = torch.nn.functional.scaled_dot_product_attention(
    q.double(), k.double(), v.double(), scale=0.125, enable_gqa=True
)
assert not package.inputs.REFUSED
assert (out.cpu() - right.transpose(1, 2)).abs().max() < 2e-3
print("right")
"""


@pytest.mark.parametrize(
    ("problem", "heads", "prompts", "following", "reason"),
    [
        (PROBLEM, 2, 0, 2 * 4, {"it is causal, with several queries": 2}),
        (PROBLEM, 4, 0, 2 * 4, {"it is causal, with several queries": 2}),
        ("gqa_attention", 2, 2, 0, {"it has keys of earlier calls": 2 * 4}),
    ],
)
def test_tokens_of_a_prompt_and_after_it_are_counted(
    load, problem, heads, prompts, following, reason
):
    config = tiny_config("llama", num_key_value_heads=heads)
    inputs, replaced = replaced_in(load, problem, config)
    (site,) = replaced.sites
    assert (site.replaced_by, len(site.modules)) == ("attention", 2)
    kernel, steps = load(problem).kernel, {"max_new_tokens": 5, "min_new_tokens": 5}
    right = replaced.model.generate(**inputs, **steps, do_sample=False, pad_token_id=0)
    kernel.inputs.REFUSED.clear()
    with replaced.package() as model, measure.recorded(kernel) as calls:
        ours = model.generate(**inputs, **steps, do_sample=False, pad_token_id=0)
    assert torch.equal(ours, right)
    assert sum(calls.counts.values()) == prompts + following
    assert calls.refused == reason


def test_the_kernel_attends_one_token_on_the_simulated_gpu(tmp_path, write):
    write(tmp_path / PROBLEM, f"torch2triton/{PROBLEM}")
    command = [sys.executable, "-m", "kernel_gym", "sim", "--", sys.executable, "-c", SCRIPT]
    done = subprocess.run(
        [*command, str(tmp_path / PROBLEM)],
        capture_output=True,
        text=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "right" in done.stdout
    assert "attention_kernel" in done.stderr  # the profile names it


def test_calls_in_which_a_query_does_not_see_all_keys_run_the_models_own_code(load):
    kernel, module = load(PROBLEM).kernel, torch.nn.Module().eval()
    module.num_key_value_groups = 2
    q, k = (torch.randn(1, heads, 6, 64).half() for heads in (4, 2))
    mask = torch.ones(1, 1, 6, 6, dtype=torch.bool).tril(-1)
    calls = {
        "": ((q, k, k, None), {"is_causal": False}),
        "it is causal, with several queries": ((q, k, k, None), {}),
        "it has a mask": ((q, k, k, mask), {"is_causal": False}),
        "it drops weights": ((q[:, :, :1], k, k, None), {"dropout": 0.5}),
        "q is torch.float32, expected torch.float16": (
            (q.float(), k.float(), k.float(), None),
            {"is_causal": False},
        ),
    }
    for reason, (arguments, named) in calls.items():
        kernel.inputs.REFUSED.clear()
        torch.manual_seed(0)
        out, _ = kernel.layers.attention(module, *arguments, scaling=0.2, **named)
        torch.manual_seed(0)
        right, _ = sdpa_attention_forward(module, *arguments, scaling=0.2, **named)
        torch.testing.assert_close(out, right, rtol=2e-3, atol=2e-3)
        assert [*kernel.inputs.REFUSED] == ([reason] if reason else [])
