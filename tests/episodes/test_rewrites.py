"""Rewrites: which start kernels they apply to, and that what they lead to is right."""

import itertools

import pytest

from kernel_gym.episodes.edits import (
    MEASURED,
    EditError,
    apply_edits,
    choices,
    edit_launch,
    launches,
)
from kernel_gym.episodes.rewrites import REWRITES
from kernel_gym.evaluator import Evaluator
from kernel_gym.records import Outcome
from kernel_gym.tasks import get_task, load_suite

ALL = dict.fromkeys(REWRITES, 1)
LAUNCH = {"BLOCK": 1024, "num_warps": 4}


def rewritten(name, **rewrites):
    """A start kernel rewritten, which has rows enough at once for several a program."""
    start = get_task(f"triton2triton/{name}").start_source
    source = edit_launch(start, LAUNCH | rewrites).source
    assert source.count("// 1024") == rewrites.get("rows", 0)
    return source.replace("// 1024", "// 8")


def test_every_rewrite_applies_to_every_kernel_of_the_form_that_is_trained_on():
    starts = {task.id: task.start_source or "" for task in load_suite("train").tasks}
    fit = {name: chosen for name, start in starts.items() if (chosen := choices(start, MEASURED))}
    assert sum(chosen[rewrite] == (0, 1) for chosen in fit.values() for rewrite in REWRITES) >= 24
    for name, chosen in fit.items():
        for picked in itertools.product(*(chosen[rewrite] for rewrite in REWRITES)):
            edit = edit_launch(starts[name], LAUNCH | dict(zip(REWRITES, picked, strict=True)))
            wanted = "BLOCK=1024, num_warps=4)"
            assert any(launch.endswith(wanted) for launch in launches(edit.source)), name
            compile(edit.source, name, "exec")


def test_several_rows_are_no_choice_where_there_are_two_kernels():
    start = get_task("triton2triton/rms_norm").start_source
    two = start.replace("@triton.jit", "@triton.jit\ndef other(x):\n    pass\n\n\n@triton.jit")
    assert choices(two, MEASURED)["rows"] == (0,)
    with pytest.raises(EditError, match=r"'@triton\.jit' occurs 2 times"):
        apply_edits(two, REWRITES["rows"])


@pytest.fixture(scope="module")
def evaluator():
    with Evaluator(device="sim:gfx942", seed=0) as opened:
        yield opened


@pytest.mark.parametrize("rewrites", [{"rows": 1}, ALL], ids=["rows", "all"])
@pytest.mark.parametrize("name", ["cumsum", "add_rms_norm_quant"])
def test_several_rows_a_program_are_right(evaluator, name, rewrites):
    evaluation = evaluator.evaluate(get_task(f"triton2triton/{name}"), rewritten(name, **rewrites))
    assert evaluation.outcome is Outcome.PASSED, evaluation.message


def test_a_kernel_whose_loop_differs_by_row_is_launched_as_it_is(evaluator):
    rows, shaped = (
        evaluator.evaluate(get_task("triton2triton/group_norm"), rewritten("group_norm", **chosen))
        for chosen in (ALL, ALL | {"rows": 0})
    )
    assert rows.outcome is shaped.outcome is Outcome.PASSED
    times = [[w.candidate_seconds for w in evaluation.workloads] for evaluation in (rows, shaped)]
    assert times[0] == times[1]
