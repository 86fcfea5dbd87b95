"""Linear layers with 4-bit weights by GPTQ and AWQ run a package's product, and stay right."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import torch

from kernel_gym.packages.models import measure, parity
from kernel_gym.packages.models.build import tiny_config
from tests.packages.models.conftest import replaced_in
from tests.packages.models.packed_linears import PackedLinear, pack

LAYERS = {"gptq": "GPTQLinear", "gptq_v2": "GPTQv2Linear", "awq": "AWQLinear"}
PROBLEM = "w4a16_matmul"
SCRIPT = """
import sys, torch, transformers
from pathlib import Path
from kernel_gym.packages.models import child
from kernel_gym.packages.models.build import tiny_config
from tests.packages.models.packed_linears import pack

transformers.logging.set_verbosity_error()
build = child.build

def packed(*arguments):
    model = build(*arguments)
    pack(model, "awq")
    return model

child.build = packed
config = tiny_config("llama", num_hidden_layers=1, vocab_size=64)
package = child.load(Path(sys.argv[1]), "cuda")
print(child.compare(package, config, "cuda", "sim:gfx942", decode=False).model_dump_json())
"""


@pytest.mark.parametrize("form", LAYERS)
@pytest.mark.parametrize("bias", [False, True])
def test_packed_layers_are_found_by_their_buffers_and_keep_parity(load, form, bias):
    config = tiny_config("llama", num_hidden_layers=1)
    change = partial(pack, form=form, bias=bias)
    inputs, replaced = replaced_in(load, PROBLEM, config, change)
    for site in replaced.sites:
        assert (site.kind, site.replaced_by) == ("PackedLinear", LAYERS[form])
    assert sum(len(site.modules) for site in replaced.sites) == 7
    truth = parity.truth_of(replaced.model, inputs)
    assert truth.dtype == torch.float64
    kernel = load(PROBLEM).kernel
    kernel.inputs.REFUSED.clear()
    with measure.recorded(kernel) as calls:
        parts = parity.closeness(replaced, inputs, parity.outputs_of(truth, inputs))
    assert all(part.right for part in parts), parts
    assert sum(calls.counts.values()) == 7
    assert not kernel.inputs.REFUSED


def test_the_kernel_runs_in_a_model_that_stays_right(tmp_path, write):
    write(tmp_path / PROBLEM, f"torch2triton/{PROBLEM}")
    command = [sys.executable, "-m", "kernel_gym", "sim", "--", sys.executable, "-c", SCRIPT]
    done = subprocess.run(
        [*command, str(tmp_path / PROBLEM)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[3],
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    row = json.loads(done.stdout.splitlines()[0])
    assert all(part["right"] for part in row["closeness"]), row
    (phase,) = row["phases"]
    assert (phase["calls"], phase["kernel_calls"]) == (7, 7), phase
    assert row["refusals"] == []


@pytest.mark.parametrize("form", ["gptq_v2", "awq"])
def test_gptqmodels_own_layers_are_replaced(load, form):
    """It needs GPTQModel 7.7: `pip install --no-deps gptqmodel` and what its import asks for."""
    pytest.importorskip("gptqmodel")
    from gptqmodel.nn_modules.qlinear.torch import TorchLinear
    from gptqmodel.nn_modules.qlinear.torch_awq import AwqTorchLinear

    kind = {"gptq_v2": TorchLinear, "awq": AwqTorchLinear}[form]
    settings = {"bits": 4, "group_size": 128, "sym": False, "desc_act": False, "bias": False}
    settings |= {"pack_dtype": torch.int32, "register_buffers": True}

    def change(model):
        for path, module in [*model.named_modules()]:
            if type(module) is torch.nn.Linear and "layers." in path:
                sizes = (module.in_features, module.out_features)
                ours = PackedLinear(*sizes, form)
                theirs = kind(in_features=sizes[0], out_features=sizes[1], **settings)
                for name, buffer in ours.named_buffers():
                    getattr(theirs, name).copy_(buffer)
                theirs.post_init()
                x = torch.randn(3, sizes[0]).half()
                torch.testing.assert_close(theirs.eval()(x), ours(x), rtol=1e-3, atol=1e-3)
                model.set_submodule(path, theirs)

    config = tiny_config("llama", num_hidden_layers=1)
    inputs, replaced = replaced_in(load, PROBLEM, config, change)
    assert {(site.kind, site.replaced_by) for site in replaced.sites} == {
        (kind.__name__, LAYERS[form])
    }
    assert sum(len(site.modules) for site in replaced.sites) == 7
    refused = load(PROBLEM).kernel.inputs.REFUSED
    refused.clear()
    with torch.no_grad():
        right = replaced.model(**inputs).logits
        with replaced.package() as model:
            ours = model(**inputs).logits
    assert not refused
    assert (ours - right).abs().max() < 0.02 * right.abs().max()


def packed_ones(model, form, **values):
    """Packs a model's linear layers, and returns them."""
    pack(model, form, **values)
    return [module for module in model.modules() if isinstance(module, PackedLinear)]


def change_zeros(model):
    """Gives a column of each layer the zero point 0, which GPTQ's checkpoints cannot have."""
    for layer in packed_ones(model, "awq"):
        layer.qzeros[0, 0] &= ~15


def change_orders(model):
    """Gives the first row of each layer to its last group, as GPTQ's activation order may."""
    for layer in packed_ones(model, "gptq"):
        layer.g_idx = layer.g_idx.flip(0)


REASONS = {
    "a zero point is 0, the operator takes 1 to 16": change_zeros,
    "its g_idx gives rows to groups in another order": change_orders,
    "its groups have 64 rows, expected 128": lambda model: pack(model, "gptq", group=64),
}


@pytest.mark.parametrize("reason", REASONS)
def test_other_forms_are_left_with_a_reason(load, reason):
    config = tiny_config("llama", num_hidden_layers=1)
    _, replaced = replaced_in(load, PROBLEM, config, REASONS[reason])
    left = [site for site in replaced.sites if reason in site.reason]
    shapes = 1 if "g_idx" in reason else 4  # a layer with 128 rows has one group
    assert len(left) == shapes, replaced.sites


def test_weights_that_change_are_brought_into_the_operators_order_again(load):
    config = tiny_config("llama", num_hidden_layers=1)
    inputs, replaced = replaced_in(load, PROBLEM, config, lambda model: pack(model, "awq"))
    layer = replaced.model.model.layers[0].mlp.up_proj
    with torch.no_grad():
        with replaced.package() as model:
            before = model(**inputs).logits
            layer.qweight.bitwise_xor_(0x55555555)
            after = model(**inputs).logits
        right = replaced.model(**inputs).logits
    assert not torch.equal(before, after)
    assert (after - right).abs().max() < 0.05 * right.abs().max()
