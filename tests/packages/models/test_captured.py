"""One decoded token, which can be repeated, and its launches, which a GPU captures and replays."""

from __future__ import annotations

import pytest
import torch

from kernel_gym.packages.models import build, captured, child, measure
from kernel_gym.packages.models.operations import OPERATIONS
from tests.packages.models.conftest import replaced_in

MODELS = ("llama", "gemma2", "qwen3", "gpt2", "gpt_neox", "opt")
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@pytest.mark.parametrize("name", MODELS)
def test_a_token_is_decoded_again_and_again_with_the_same_result(name):
    model = build.build(build.tiny_config(name), torch.float32, "sdpa")
    tokens = build.inputs_of(model, 2, 9)["input_ids"]
    step = captured.one_token(model, tokens)
    with torch.no_grad():
        right = model(input_ids=tokens).logits[:, -1:]
    for _ in range(3):
        torch.testing.assert_close(step(), right, rtol=1e-4, atol=1e-5)


@needs_gpu
@pytest.mark.parametrize("name", MODELS)
def test_the_launches_of_a_token_are_captured(load, name):
    problem = "layer_norm" if name in ("gpt2", "gpt_neox", "opt") else "rms_norm"
    deployment = child.compare(load(problem), build.tiny_config(name), "cuda", "cuda")
    assert not deployment.uncaptured
    phase = deployment.phases[-1]
    assert phase.name == captured.NAME
    assert 0 < phase.seconds < deployment.phases[1].seconds


def test_a_device_without_captures_has_no_captured_phase(load):
    deployment = child.compare(load("rms_norm"), build.tiny_config("llama"), "cpu", "cpu")
    assert [phase.name for phase in deployment.phases] == ["prefill", "decode"]
    assert not deployment.uncaptured


@pytest.mark.parametrize("name", ["gemma", "olmo2"])
def test_a_norms_own_code_is_timed_and_not_only_its_operators(load, name):
    inputs, replaced = replaced_in(load, "rms_norm", build.tiny_config(name))
    operator = measure.Operator(load("rms_norm").kernel, OPERATIONS["rms_norm"])
    layers = operator.alone(replaced)
    with replaced.package() as model, measure.recorded(operator.kernel, layers) as calls:
        model(**inputs)
    assert set(calls.modules) == set(calls.examples)
    for call in calls.modules.values():
        assert type(call.module).__name__.endswith("RMSNorm")
        torch.testing.assert_close(call.run_own(), call.run_layer(), rtol=2e-3, atol=2e-3)


def test_a_module_that_computes_more_is_not_timed_for_the_operation(load):
    _, replaced = replaced_in(load, "swiglu", build.tiny_config("llama"))
    operator = measure.Operator(load("swiglu").kernel, OPERATIONS["swiglu"])
    assert replaced.layers
    assert not operator.alone(replaced)


@needs_gpu
def test_weights_between_two_calls_are_more_than_the_gpus_cache_holds():
    cache = torch.cuda.get_device_properties("cuda").L2_cache_size
    clock = captured.CapturedClock("cuda")
    places = {next(clock._weights).data_ptr() for _ in range(captured.WEIGHTS)}
    assert len(places) == captured.WEIGHTS
    assert captured.WEIGHTS * next(clock._weights).nbytes > 2 * cache


@pytest.mark.parametrize(("longest", "prompts"), [(128, 128), (4096, 8)])
def test_measured_prompts_have_as_many_tokens_as_servers_take(longest, prompts):
    config = build.tiny_config("llama", max_position_embeddings=longest)
    model = build.build(config, torch.float32, "sdpa")
    long = child._longer(model, build.inputs_of(model, 2, 8), "cpu")
    assert long["input_ids"].shape == (prompts, 16384 // prompts)
    assert long["attention_mask"].all()
