"""A decoder layer as a task: the gain of the whole layer pays its kernels, if they are right."""

from __future__ import annotations

import gymnasium
import pytest

import kernel_gym  # noqa: F401 - registers the environments
from kernel_gym.errors import InputError
from kernel_gym.tasks import get_task
from kernel_gym.tasks.names import MODELS, require_suite, require_task

NAME, TASK = "model/llama-decoder-layer", "triton2triton/llama_decoder_layer"
FUSED = {
    "    if ADD:\n": """    if ADD == 2:
        gate = tl.load(sum_ptr + deep_rows * sum_row + deep_cols, mask=inside, other=0.0)
        gate = gate.to(tl.float32)
        total *= gate / (1.0 + tl.exp(-gate))
    if ADD == 1:
""",
    "def linear(x, weight, added=None):": "def linear(x, weight, added=None, way=1):",
    "ADD=added is not None,": "ADD=0 if added is None else way,",
    "    gate, up = linear(m, gate_proj), linear(m, up_proj)\n": (
        "    inner = linear(m, up_proj, linear(m, gate_proj), 2)\n"
    ),
    """    inner = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    count = gate.numel()
    swiglu_kernel[(triton.cdiv(count, 1024),)](gate, up, inner, count, BLOCK=1024)
""": "",
}
"""The activation becomes a part of the second product: one launch less."""


def changed(source, changes):
    """Returns a source with each text replaced, which has to be there once."""
    for before, after in changes.items():
        assert source.count(before) == 1, before
        source = source.replace(before, after)
    return source


@pytest.mark.slow
def test_the_reward_is_the_gain_of_the_whole_layer_and_its_gate_is_parity():
    env = gymnasium.make("KernelOpt-v0", task=NAME, device="sim:gfx942", max_turns=2)
    _, info = env.reset(seed=0)
    assert info["task"] == TASK
    start = get_task(NAME).start_source
    _, reward, _, _, info = env.step(changed(start, FUSED))
    assert info["outcome"] == "passed"
    assert 1.02 < info["speedup"] < 1.3  # one launch of thirteen, and its memory
    assert reward > 0.15
    wrong = {"head // group * width + lane": "head % (heads // group) * width + lane"}
    _, reward, terminated, _, info = env.step(changed(start, wrong))
    assert info["outcome"] == "wrong_values"
    assert reward < 0.15
    assert terminated
    env.close()


def test_the_name_of_a_part_of_a_model_works_like_an_id():
    for name, task in MODELS.items():
        assert get_task(name) is get_task(task)
        require_task(name)
        require_suite(name)
    with pytest.raises(InputError, match="model/llama-decoder-layer"):
        get_task("model/llama-decoder-layers")
    with pytest.raises(InputError, match="model/llama-decoder-layer"):
        require_task("model/llama-decoder")
