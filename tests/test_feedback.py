"""The feedback that a policy reads, and what it never contains."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_gym.feedback import MAX_CHARS, feedback
from kernel_gym.formatting import calibration
from kernel_gym.records import Clock, Element, KernelFacts, Outcome, Stage
from kernel_gym.tasks.embedded import foreign_launch, wrong_language
from kernel_gym.tasks.workload import Split
from tests.records import evaluation, failure, passing, workload

ELEMENT = Element(output="out", index=(3, 17), expected=0.25, found=0.5, tolerance=1e-3)
SECRET = {"rows": 31337, "cols": 27644}


@dataclass(frozen=True)
class TaskStub:
    """The two fields of a task that advice uses."""

    language: str = "triton"
    entry: str = "softmax"


TASK = TaskStub()


def test_a_passing_kernel_reads_its_times_and_facts():
    text = feedback(TASK, passing(2.0, 0.9))
    assert "Speedup over the baseline: 2x (modelled)" in text
    assert "Times of the train workloads (modelled)" in text
    assert "rows=128 cols=4096" in text
    assert "48 VGPRs" in text
    assert "bound by hbm" in text
    assert "does not carry over" in text


def test_ratios_that_count_as_limits_are_named():
    rows = [workload(speedup=40.0), workload(speedup=2.0), workload(Split.UNSEEN, speedup=0.01)]
    text = feedback(TASK, passing(4.5, 0.1).model_copy(update={"workloads": tuple(rows)}))
    limits = "ratios are beyond 0.1x to 10x and count as these limits."
    assert f"Speedup over the baseline: 4.5x (modelled). 1 of 2 {limits}" in text
    assert f"1 of 1 {limits}" in text.split("On unseen workloads")[1]
    assert "count as" not in feedback(TASK, passing(2.0, 0.9))


def test_measured_times_are_called_measured():
    text = feedback(TASK, passing(2.0, 2.0).model_copy(update={"clock": Clock.MEASURED}))
    assert "measured" in text
    assert "modelled" not in text


def test_a_train_failure_shows_the_element():
    failed = workload(passed=False, element=ELEMENT, message="values differ")
    text = feedback(TASK, failure(Outcome.WRONG_VALUES, Stage.TRAIN, workloads=[failed]))
    assert "Wrong values (stage: train)." in text
    assert "rows=64 cols=1000" in text
    assert "out[3, 17]: expected 0.25, found 0.5" in text


@pytest.mark.parametrize(
    ("split", "stage", "outcome"),
    [
        (Split.ADVERSARIAL, Stage.ADVERSARIAL, Outcome.WRONG_VALUES),
        (Split.UNSEEN, Stage.UNSEEN, Outcome.UNSEEN_FAILED),
    ],
)
def test_a_hidden_workload_is_not_described(split, stage, outcome):
    failed = workload(
        split=split, passed=False, element=ELEMENT, message="rows=31337 differ", dims=SECRET
    )
    evaluated = evaluation(
        outcome, stage, [failed], message="rows=31337 cols=27644", detail="at rows 31337"
    )
    text = feedback(TASK, evaluated)
    assert "values are wrong" in text
    for secret in ("31337", "27644", "0.25", "17"):
        assert secret not in text


def test_a_hidden_fault_names_its_kind():
    failed = workload(
        split=Split.UNSEEN, passed=False, message="load out of bounds at row 31337", dims=SECRET
    )
    text = feedback(TASK, failure(Outcome.UNSEEN_FAILED, Stage.UNSEEN, workloads=[failed]))
    assert "out of bounds" in text
    assert "31337" not in text


def test_a_keyword_counts_at_the_start_of_a_word_only():
    failed = workload(split=Split.UNSEEN, passed=False, message="Traceback: it broke")
    evaluated = failure(Outcome.UNSEEN_FAILED, Stage.UNSEEN, workloads=[failed])
    text = feedback(TASK, evaluated.model_copy(update={"message": "fails: no answer in time"}))
    assert "barrier" not in text
    assert "did not return in time" in text


def test_a_failure_of_the_timing_names_no_workload():
    evaluated = failure(Outcome.HACK, Stage.TIME).model_copy(
        update={"message": "1e-9 s on rows=31337"}
    )
    text = feedback(TASK, evaluated)
    assert "31337" not in text
    assert "less than the memory traffic" in text


def test_compiler_text_is_kept_at_both_ends_without_folders():
    detail = "/tmp/build-1234/kernel.py:7: error: first\n" + "noise\n" * 2000 + "last line"
    text = feedback(TASK, failure(Outcome.COMPILE_ERROR, Stage.BUILD, detail=detail))
    assert "kernel.py:7: error: first" in text
    assert "/tmp" not in text
    assert text.count("noise") < 400
    assert "last line" in text


def test_a_missing_value_needs_no_arithmetic():
    element = Element(output="out", index=(0,), expected=0.0, found=float("nan"), tolerance=0.0)
    failed = workload(passed=False, element=element)
    text = feedback(TASK, failure(Outcome.WRONG_VALUES, Stage.TRAIN, workloads=[failed]))
    assert "expected 0, found nan" in text
    assert "off by" not in text


def test_columns_without_numbers_are_left_out():
    untimed = workload(speedup=1.0).model_copy(
        update={"baseline_seconds": None, "speedup": None, "roofline_seconds": None}
    )
    text = feedback(TASK, failure(Outcome.WRONG_VALUES, Stage.ADVERSARIAL, workloads=[untimed]))
    assert "20 us" in text
    assert "baseline" not in text


def test_addresses_are_dropped():
    text = feedback(TASK, failure(Outcome.RUNTIME_ERROR, Stage.TRAIN, detail="at 0x7f12aabb4400"))
    assert "0x7f" not in text


def test_our_own_failure_says_so_and_shows_nothing_else():
    text = feedback(TASK, failure(Outcome.INFRA, Stage.BUILD, detail="disk full in /var"))
    assert "not your source" in text
    assert "disk" not in text


@given(
    st.sampled_from(list(Outcome)),
    st.sampled_from(list(Stage)),
    st.text(max_size=9000),
    st.text(max_size=9000),
)
def test_any_evaluation_gives_bounded_text(outcome, stage, message, detail):
    evaluated = evaluation(outcome, stage, message=message, detail=detail)
    assert 0 < len(feedback(TASK, evaluated)) <= MAX_CHARS


@pytest.mark.parametrize("count", [1, 60])
def test_many_workloads_stay_within_the_bound(count):
    results = [workload(speedup=1.0 + i / 100, dims={"rows": i, "cols": 7}) for i in range(count)]
    evaluated = evaluation(Outcome.PASSED, workloads=results, speedup=1.1)
    assert len(feedback(TASK, evaluated)) <= MAX_CHARS


def test_equal_evaluations_read_alike():
    one = passing(2.0, 1.5)
    other = one.model_copy(update={"wall_seconds": {"build": 99.0}})
    assert feedback(TASK, one) == feedback(TASK, other)


LAUNCH_BOUND = workload(speedup=10.0).model_copy(update={"launch_seconds": 1.6e-6})


def kernel(**fields):
    return KernelFacts(name="k", vgprs=8, sgprs=8, workload=0, **fields)


def feedback_on(*results, kernels=(), **fields):
    return feedback(TASK, evaluation(Outcome.PASSED, workloads=results, kernels=kernels, **fields))


def test_the_launch_in_each_modelled_time_is_shown():
    text = feedback_on(LAUNCH_BOUND)
    assert "1.6 us (80%)" in text
    assert "On 1 of 1 train workloads most of the time is the launch (1.6 us of 2 us" in text
    assert "launch" not in feedback_on(
        workload(speedup=10.0)
    )  # a measured time has no modelled launch


def test_advice_to_launch_less_is_for_several_launches():
    kernels = (kernel(bound_by="launch"),)
    assert "fewer" not in feedback_on(LAUNCH_BOUND, kernels=kernels)
    several = LAUNCH_BOUND.model_copy(update={"launches": 2})
    assert "fewer of them" in feedback_on(several, kernels=kernels)


@pytest.mark.parametrize(("waiting", "advised"), [(0.3, True), (0.01, False)])
def test_bank_conflicts_are_named_and_advised_on_where_waves_wait_for_them(waiting, advised):
    conflict = {"source": "candidate.hip:15", "text": "ds_read", "cycles": 32.0, "least": 2.0}
    profile = {"stalls": {"LDS queue": waiting}, "bank_conflicts": [conflict]}
    text = feedback_on(LAUNCH_BOUND, kernels=(kernel(profile=profile),))
    assert "bank conflicts: candidate.hip:15 32 cycles an access of LDS, 2 without" in text
    assert ("pad or swizzle" in text) == advised


def test_a_wrong_kernel_gets_no_advice_on_speed():
    failed = LAUNCH_BOUND.model_copy(update={"passed": False})
    record = evaluation(
        Outcome.WRONG_VALUES,
        Stage.TRAIN,
        [failed],
        kernels=(kernel(bound_by="latency", vgpr_spills=3),),
    )
    advice = feedback(TASK, record).partition("Next:")[2]
    assert "masks" in advice
    assert "latency" not in advice
    assert "spills" not in advice


@pytest.mark.parametrize(
    ("outcome", "message", "hint"),
    [
        (
            Outcome.RUNTIME_ERROR,
            "RuntimeError: torch operator aten.exp.default is refused on device tensors: only",
            "in a kernel of your own",
        ),
        (Outcome.RUNTIME_ERROR, "TypeError: softmax() got an argument", "host code"),
        (Outcome.RUNTIME_ERROR, "read of 2 bytes at 0x... is out of bounds", "Check bounds"),
        (Outcome.SCREENED, "the source is empty", "whole source"),
        (Outcome.SCREENED, "line 1: import of 'os'", "leave out everything else"),
        (Outcome.SCREENED, wrong_language("import triton", "tilelang"), "the language that"),
        (Outcome.RUNTIME_ERROR, foreign_launch("flydsl"), "the language that"),
        (Outcome.WRONG_VALUES, "output 'out': wrong; cause: race: byte 4 of LDS", "barrier"),
        (Outcome.WRONG_VALUES, "output 'out': wrong", "masks"),
    ],
)
def test_advice_fits_what_the_message_says(outcome, message, hint):
    record = evaluation(outcome, Stage.TRAIN, message=message)
    advice = feedback(TASK, record).partition("Next:")[2]
    assert hint in advice
    assert advice.count("\n  - ") == 1


RACE = (
    "race: {} bytes into output 'out' with rows of 64000 bytes (512000 bytes) is used by two waves "
    "without an atomic or a barrier that orders them; the other access is by wave 2 of workgroup 0 "
    "at candidate.py:13: buffer_store_short v6, v8, s[4:7], 0 offen; kernel softmax_kernel, "
    "candidate.py:{}, workgroup (1, 0, 0), wave 0, lane 0: buffer_store_short v29, v128, 0 offen"
)


@pytest.mark.parametrize(
    ("place", "line", "beyond"),
    [(64000, 13, True), (64126, 13, True), (96000, 13, False), (0, 13, False), (64000, 14, False)],
)
def test_stores_of_one_line_at_the_start_of_a_row_are_a_mask_that_is_too_wide(place, line, beyond):
    record = failure(Outcome.RUNTIME_ERROR, Stage.TRAIN)
    text = feedback(TASK, record.model_copy(update={"message": RACE.format(place, line)}))
    assert ("one of them is probably beyond the end of the row before" in text) is beyond
    assert ("Order the two accesses" in text) is not beyond
    if beyond:
        assert f"{place - 64000} bytes into a row of output 'out'" in text


def test_the_cause_of_a_hidden_failure_gives_no_advice_of_its_own():
    record = failure(Outcome.UNSEEN_FAILED, Stage.UNSEEN)
    record = record.model_copy(update={"message": "race: byte 31337 of LDS"})
    assert "barrier between them" not in feedback(TASK, record)


def test_advice_names_the_size_that_fills_no_block():
    right = [workload(dims={"rows": 64, "cols": 1024}), workload(dims={"rows": 8, "cols": 4096})]
    wrong = workload(passed=False, dims={"rows": 64, "cols": 1000})
    record = evaluation(Outcome.WRONG_VALUES, Stage.TRAIN, [*right, wrong])
    assert "Right with cols = 1024, 4096, wrong with cols = 1000" in feedback(TASK, record)
    same = wrong.model_copy(update={"dims": right[0].dims})
    record = evaluation(Outcome.WRONG_VALUES, Stage.TRAIN, [*right, same])
    assert "Right with" not in feedback(TASK, record)


def test_how_far_modelled_times_may_be_off_is_said_in_words():
    known = LAUNCH_BOUND.model_copy(update={"time_factor": 2.5, "speedup_factor": 1.5})
    unknown = LAUNCH_BOUND.model_copy(update={"uncalibrated": "nothing is like it"})
    lines = calibration(
        evaluation(Outcome.PASSED, workloads=(known, unknown, unknown), speedup=1.0)
    )
    assert lines[0].startswith("1 of 3 modelled times may be off by 2.5x either way")
    assert "speedup over the baseline kernel by 1.5x" in lines[0]
    assert lines[1:] == ["2 of 3 modelled times uncalibrated: nothing is like it."]
    assert calibration(passing(2.0, 1.5)) == []  # measured
