"""Kernels that are wrong on legal values which models seldom have: the simulator refuses each."""

from __future__ import annotations

import pytest

from kernel_gym.evaluator import Evaluator
from kernel_gym.records import Outcome
from kernel_gym.tasks import get_task

REFUSED = {Outcome.WRONG_VALUES, Outcome.WRONG_METADATA, Outcome.UNSEEN_FAILED}
SNAP = "{name} = min({values}, key=lambda value: abs(value - {name}))\n    "


def _snapped(source: str, before: str, name: str, values: tuple[float, ...]) -> str:
    """Returns a source that takes the printed value next to the scalar."""
    assert source.count(before) == 1
    return source.replace(before, SNAP.format(name=name, values=values) + before)


def _edited(source: str, *edits: tuple[str, str]) -> str:
    for before, after in edits:
        assert before in source, before
        source = source.replace(before, after)
    return source


SNAPS = {
    "triton2triton/rms_norm_backward": ("dx = torch.empty(", "eps"),
    "triton2triton/softmax_backward": ("dx = torch.empty", "scale"),
    "triton2triton/cross_entropy_backward": ("rows, vocab = logits.shape", "ignore_index"),
    "triton2triton/sink_attention": ("out = torch.empty", "window"),
}
EDITS = {
    "triton2triton/kv_cache_write": [
        (
            "    write_kernel[(tokens, heads)](",
            "    k_cache, v_cache = k_cache.clone(), v_cache.clone()\n"
            "    write_kernel[(tokens, heads)](",
        )
    ],
    "triton2triton/sgd_momentum_step": [
        (
            "    count = param.shape[0]",
            "    param, velocity = param.clone(), velocity.clone()\n    count = param.shape[0]",
        )
    ],
    # the slopes of the paper, whatever the argument holds
    "triton2triton/alibi_attention": [
        ("tl.load(slope_ptr + head)", "tl.exp2(-8.0 * (head + 1) / heads)")
    ],
    # no least scale, so that a block of zeros is divided by zero
    "triton2triton/adam8bit_step": [
        ("tl.maximum(tl.max(tl.abs(m), axis=0), 1e-30)", "tl.max(tl.abs(m), axis=0)"),
        ("tl.maximum(tl.max(v, axis=0), 1e-30)", "tl.max(v, axis=0)"),
    ],
    # scales of a range that float16 does not have
    "triton2triton/mxfp4_matmul": [
        ("tl.float32, bitcast=True)", "tl.float32, bitcast=True).to(tl.float16).to(tl.float32)")
    ],
    # sums beyond the end of float16
    "triton2triton/bitnet_matmul": [
        ("(total.to(tl.float32) *", "(total.to(tl.float16).to(tl.float32) *")
    ],
    # at most eight of the drafted tokens
    "triton2triton/speculative_verify": [
        ("for t in range(0, steps):", "for t in range(0, tl.minimum(steps, 8)):")
    ],
    # the first point, where a query lies on a point
    "triton2triton/knn": [
        (
            "        tl.store(distance_ptr",
            "        place = tl.where(nearest == 0.0, 0, place)\n        tl.store(distance_ptr",
        )
    ],
}


@pytest.fixture(scope="module")
def evaluator():
    with Evaluator(device="sim:gfx942", seed=7) as made:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("task_id", SNAPS)
def test_a_kernel_that_knows_the_printed_values_only_is_refused(evaluator, task_id):
    task = get_task(task_id)
    before, name = SNAPS[task_id]
    (arg,) = (arg for arg in task.problem.declared if arg.name == name)
    source = _snapped(task.start_source, before, name, arg.values)
    evaluation = evaluator.evaluate(task, source)
    assert evaluation.outcome in REFUSED, evaluation.message


@pytest.mark.slow
@pytest.mark.parametrize("task_id", EDITS)
def test_a_wrong_kernel_is_refused(evaluator, task_id):
    task = get_task(task_id)
    evaluation = evaluator.evaluate(task, _edited(task.start_source, *EDITS[task_id]))
    assert evaluation.outcome in REFUSED, evaluation.message


@pytest.mark.parametrize("name", ["kv_cache_write", "sgd_momentum_step"])
def test_a_prompt_says_that_the_argument_itself_is_returned(name):
    task = get_task(f"triton2triton/{name}")
    for output in task.problem.outputs:
        assert any(arg.name == output.place and arg.in_place for arg in task.problem.args)
