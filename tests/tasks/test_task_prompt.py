"""Prototypes, references as text, and prompts."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from kernel_gym.devices.gpu.vendors import DATA_SHEETS
from kernel_gym.hardware import SIMULATED
from kernel_gym.tasks import (
    Kind,
    Mode,
    Scale,
    Split,
    Workload,
    c_prototype,
    get_problem,
    get_task,
    make_inputs,
    problem_names,
    prompt,
    python_prototype,
    task_ids,
    train_workloads,
    unseen_workloads,
)
from kernel_gym.tasks import guide as guides
from kernel_gym.tasks.guide import TOPICS, guide, topics_of, whole_guide
from kernel_gym.tasks.small_floats import FNUZ, OCP, native_small_floats


def test_c_prototypes_to_the_letter():
    assert c_prototype(get_problem("rope")) == (
        'extern "C" int rope(const __half* x, const float* cos, const float* sin, __half* out, '
        "int64_t tokens, int64_t heads, int64_t head_dim, hipStream_t stream)"
    )
    assert c_prototype(get_problem("cross_entropy")) == (
        'extern "C" int cross_entropy(const __hip_bfloat16* logits, const int64_t* target, '
        "int64_t ignore_index, float* loss, int64_t rows, int64_t vocab, hipStream_t stream)"
    )


def test_python_prototypes_to_the_letter():
    assert python_prototype(get_problem("layer_norm")) == (
        "def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float)"
        " -> torch.Tensor"
    )
    assert python_prototype(get_problem("row_argmax")) == (
        "def row_argmax(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]"
    )


@pytest.mark.parametrize("task_id", [i for i in task_ids() if i.startswith("hip2hip/")])
def test_hip_baselines_have_the_generated_prototype(task_id):
    task = get_task(task_id)
    source = " ".join(task.baseline_source.split())
    assert c_prototype(task.problem) in source


@pytest.mark.parametrize("name", problem_names())
def test_the_reference_stands_alone_and_agrees(name):
    task = get_task(f"torch2triton/{name}")
    scope: dict = {}
    exec(task.reference_source, scope)
    problem = task.problem
    workload = Workload(dict(problem.adversarial[0]), Split.TRAIN, Kind.TRAIN)
    inputs = make_inputs(problem, workload, seed=0)
    for ours, theirs in zip(scope[name](**inputs), problem.reference(**inputs), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("task_id", task_ids())
def test_prompts_show_what_the_mode_allows(task_id):
    task = get_task(task_id)
    workloads = train_workloads(task.problem, Scale.SIM)
    text = prompt(task, "device: Simulated CU 9000", workloads)
    assert "Simulated CU 9000" in text
    prototype = c_prototype if task.language == "hip" else python_prototype
    assert prototype(task.problem) in text
    assert all(f"- {workload}\n" in text for workload in workloads)
    assert ("## Start kernel" in text) == (task.start_source is not None)
    assert ("## PyTorch reference" in text) == (task.mode != "instruction2triton")
    assert "unseen workloads" in text
    assert task.problem.definition in text
    assert "kernel_gym" not in text


def test_prompts_do_not_tell_unseen_shapes():
    task = get_task("triton2triton/layer_norm")
    text = prompt(task, "a device", train_workloads(task.problem, Scale.SIM))
    for seed in range(20):
        for workload in unseen_workloads(task.problem, Scale.SIM, "triton", seed):
            assert str(workload) not in text


GUIDED = sorted({spec.arch for spec in [*SIMULATED.values(), *(sheet for _, sheet in DATA_SHEETS)]})
"""Every device with known peaks has a guide."""


@pytest.mark.parametrize("arch", GUIDED)
@pytest.mark.parametrize("language", ["triton", "hip"])
def test_guides_are_short_and_of_the_architecture(arch, language):
    text = guide(arch, language)
    assert 1500 < len(text) < 6000
    assert ("MFMA" in text) == arch.startswith("gfx")
    assert ("wgmma" in text) == arch.startswith("sm_")
    for word in ("split-K", "Pitfalls", "lanes", "registers", "neighbouring addresses"):
        assert word in text
    assert all(line.startswith("- ") for line in text.splitlines())
    assert ("OCP: e4m3 to 448" in text) == bool(native_small_floats(arch) & OCP)
    assert ("fnuz variant" in text) == bool(native_small_floats(arch) & FNUZ)


@pytest.mark.parametrize("arch", SIMULATED)
def test_what_guides_say_of_a_device_is_in_its_data_sheet(arch):
    spec, text = SIMULATED[arch], guide(arch, "triton")
    assert f"{spec.compute_units} compute units" in text
    assert f"{spec.lds_bytes >> 10} KiB a compute unit" in text
    times = round(spec.matrix_rate[torch.bfloat16] / spec.vector_rate)
    assert f"runs at {times} times the fp32 vector rate" in text


@pytest.mark.parametrize(
    ("name", "topics"),
    [
        ("add", set()),
        ("rms_norm", {"rows"}),
        ("matmul", {"product"}),
        ("gated_delta_rule", {"product", "rows"}),
        ("causal_attention", {"product", "rows"}),
        ("quantize_fp8_group", {"float8", "rows"}),
        ("fp8_block_matmul_ocp", {"float8", "product"}),
        ("generated:seed=1,depth=3", None),
    ],
)
def test_guides_are_chosen_by_what_a_problem_computes(name, topics):
    problem = get_problem(name)
    assert topics is None or topics_of(problem) == topics
    text = prompt(get_task(f"torch2triton/{name}"), "a device", arch="gfx942")
    approach = text.split("## Approach\n")[1]
    assert ("MFMA" in approach) == ("product" in topics_of(problem))
    assert ("online softmax" in approach) == ("rows" in topics_of(problem))
    assert ("fnuz variant" in approach) == ("float8" in topics_of(problem))


def test_guides_have_no_other_topics():
    texts = [path.read_text() for path in Path(guides.__file__).parent.glob("guides/*/*.md")]
    headings = {line for text in texts for line in text.splitlines() if line.startswith("#")}
    assert headings == {f"## {topic}" for topic in TOPICS}


def test_prompts_hold_the_guide_and_the_advice_of_the_mode():
    texts = {i: prompt(get_task(i), "a device", arch="gfx942") for i in task_ids()}
    for task_id, text in texts.items():
        task = get_task(task_id)
        assert whole_guide("gfx942", task.written_in, topics_of(task.problem)) in text
        assert "## Approach" in text
    advised = {
        mode: texts[f"{mode}/softmax"].split("## Approach\n")[1].split("\n- ")[0] for mode in Mode
    }
    assert len(set(advised.values())) >= 4
    assert guide("", "triton") == guide("sm_52", "triton") == ""
