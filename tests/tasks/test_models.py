"""The dimensions of models: present, consistent, and found by name."""

from __future__ import annotations

import pickle

import pytest

from kernel_gym.tasks.models import FAMILIES, model, models


def test_there_are_models_of_every_family():
    assert len(models()) >= 25
    assert {entry.family for entry in models().values()} == set(FAMILIES)


@pytest.mark.parametrize("entry", models().values(), ids=lambda entry: entry.name)
def test_dimensions_are_whole_and_fit_together(entry):
    for value in entry.dimensions.values():
        values = value if isinstance(value, list) else [value]
        assert all(type(v) is int and v > 0 for v in values)
    sizes = entry.dimensions
    if "kv_heads" in sizes:
        assert entry.heads % entry.kv_heads == 0
    if {"hidden", "heads", "head_dim"} <= set(sizes) and entry.family in ("vision", "diffusion"):
        assert entry.heads * entry.head_dim == entry.hidden
    if "top_k" in sizes:
        assert entry.top_k < entry.experts
    if "patch" in sizes and "image" in sizes:
        assert entry.image % entry.patch == 0
    stages = [value for key, value in sizes.items() if key.startswith("stage_")]
    assert len({len(stage) for stage in stages}) <= 1


def test_a_few_by_hand():
    assert (model("llama-3-8b").hidden, model("llama-3-8b").intermediate) == (4096, 14336)
    assert (model("deepseek-v3").experts, model("deepseek-v3").top_k) == (256, 8)
    assert model("mamba-2-8b").inner == 2 * model("mamba-2-8b").hidden


def test_unknown_names_say_what_there_is():
    with pytest.raises(KeyError, match="llama-3-8b"):
        model("llama3-8b")
    with pytest.raises(AttributeError, match=r"'gpt2': no 'experts'; .*'hidden'"):
        _ = model("gpt2").experts


def test_models_survive_pickling():
    assert pickle.loads(pickle.dumps(model("gpt2"))) == model("gpt2")
