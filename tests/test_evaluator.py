"""The evaluator end to end on the simulator: every outcome, and what hostile code costs."""

import weakref
from dataclasses import replace

import pytest
import torch

from kernel_gym.devices.base import DeviceLostError
from kernel_gym.evaluator import Evaluator
from kernel_gym.feedback import feedback
from kernel_gym.judge.protocol import RETRIES
from kernel_gym.records import Clock, Evaluation, Outcome, Stage
from kernel_gym.storage.secret import PUBLIC
from kernel_gym.tasks import (
    Mode,
    Split,
    Task,
    adversarial_workloads,
    get_problem,
    get_task,
    train_workloads,
)
from tests.test_architecture import ROOT

TASK = "triton2triton/softmax"
HEAD = "import torch, triton, triton.language as tl\n"

TORCH = "import torch\ndef softmax(x): return torch.softmax(x, -1)"
LOOP_ON_DEVICE = """
@triton.jit
def forever(x, out, n):
    total = 0.0
    while n > 0:
        total += tl.load(x).to(tl.float32)
    tl.store(out, total)

def softmax(x):
    out = torch.empty_like(x)
    forever[(1,)](x, out, 3)
    return out
"""
COUNT_ON_DEVICE = """
@triton.jit
def endless(x, out, n):
    i = n.to(tl.int64)
    total = 0.0
    while i < 4611686018427387904:
        total += tl.load(x).to(tl.float32) * i.to(tl.float32)
        i += 1
    tl.store(out, total)

def softmax(x):
    out = torch.empty_like(x)
    endless[(1,)](x, out, 3)
    return out
"""
OUT_OF_BOUNDS = """
@triton.jit
def stray(x, out):
    offsets = tl.program_id(0) * 1024 + tl.arange(0, 1024)
    tl.store(out + offsets * 4096, tl.load(x + offsets % 16))

def softmax(x):
    out = torch.empty_like(x)
    stray[(64,)](x, out)
    return out
"""
DECOY = """
@triton.jit
def nothing(x):
    tl.store(x, tl.load(x))

scratch = None

def softmax(x):
    scratch = torch.zeros(16, device=x.device)
    nothing[(1,)](scratch)
    return x.clone()
"""
COMPILES_NOT = """
@triton.jit
def broken(x):
    tl.store(x, undefined_name)

def softmax(x):
    broken[(1,)](x)
    return x
"""
SLOWER_AT_FIRST = """
seen = {}

def softmax(x):
    for _ in range(1 if seen.setdefault(x.shape, 0) else 6):
        out = _softmax(x)
    seen[x.shape] += 1
    return out
"""
TRAIN_SHAPES_ONLY = """
def softmax(x):
    out = _softmax(x)
    return out if tuple(x.shape) in {shapes} else out.zero_()
"""


@pytest.fixture(scope="module")
def evaluator():
    with Evaluator(device="sim:gfx942", seed=0) as evaluator:
        yield evaluator


@pytest.fixture(scope="module")
def task():
    return get_task(TASK)


def _wrapping(task, code):
    """The baseline under another name, with a wrapper of our own around it."""
    return task.baseline_source.replace("def softmax(", "def _softmax(") + code


def test_the_baseline_passes_at_a_speedup_of_one(evaluator, task):
    result = evaluator.evaluate(task, task.baseline_source)
    assert (result.outcome, result.stage, result.message) == (Outcome.PASSED, Stage.DONE, "")
    assert result.clock is Clock.MODELLED
    assert result.speedup == pytest.approx(1.0, rel=0.05)
    assert result.unseen_speedup == pytest.approx(1.0, rel=0.05)
    assert {w.kind for w in result.by_split(Split.UNSEEN)} == {
        "edge", "scale_up", "scale_down", "alignment", "aspect", "production", "reach"
    }  # fmt: skip
    assert all(w.launches == 1 for w in result.workloads)
    assert result.kernels[0].vgprs > 0


def test_equal_runs_leave_equal_records(task):
    def run():
        with Evaluator(device="sim:gfx942", seed=7) as fresh:
            return fresh.evaluate(task, task.baseline_source)

    assert run().canonical() == run().canonical()


def test_another_seed_draws_other_unseen_workloads(evaluator, task):
    one = evaluator.evaluate(task, task.baseline_source, seed=1)
    two = evaluator.evaluate(task, task.baseline_source, seed=2)
    assert [w.dims for w in one.by_split(Split.TRAIN)] == [
        w.dims for w in two.by_split(Split.TRAIN)
    ]
    assert [w.dims for w in one.by_split(Split.UNSEEN)] != [
        w.dims for w in two.by_split(Split.UNSEEN)
    ]


OUTCOMES = {
    "no text": ("", Outcome.SCREENED, Stage.SCREEN),
    "ctypes": ("import ctypes", Outcome.SCREENED, Stage.SCREEN),
    "syntax": ("def softmax(:", Outcome.COMPILE_ERROR, Stage.BUILD),
    "no entry": (HEAD + "def soft(x): return x", Outcome.COMPILE_ERROR, Stage.BUILD),
    "no module": ("import not_installed_anywhere", Outcome.COMPILE_ERROR, Stage.BUILD),
    "kernel": (HEAD + COMPILES_NOT, Outcome.COMPILE_ERROR, Stage.TRAIN),
    "raises": ("def softmax(x): raise KeyError(1)", Outcome.RUNTIME_ERROR, Stage.TRAIN),
    "stray": (HEAD + OUT_OF_BOUNDS, Outcome.RUNTIME_ERROR, Stage.TRAIN),
    "torch": (TORCH, Outcome.RUNTIME_ERROR, Stage.TRAIN),
    "host read": (HEAD + "def softmax(x): return x.cpu()", Outcome.RUNTIME_ERROR, Stage.TRAIN),
    "nothing": ("def softmax(x): pass", Outcome.WRONG_METADATA, Stage.TRAIN),
    "its input": ("def softmax(x): return x", Outcome.WRONG_METADATA, Stage.TRAIN),
    "no kernel": (HEAD + "def softmax(x): return x.clone()", Outcome.WRONG_VALUES, Stage.TRAIN),
    "decoy": (HEAD + DECOY, Outcome.WRONG_VALUES, Stage.TRAIN),
    "still loop": (HEAD + LOOP_ON_DEVICE, Outcome.RUNTIME_ERROR, Stage.TRAIN),
    "counting loop": (HEAD + COUNT_ON_DEVICE, Outcome.TIMEOUT, Stage.TRAIN),
}  # fmt: skip


@pytest.mark.parametrize("case", OUTCOMES)
def test_outcomes(evaluator, task, case):
    source, outcome, stage = OUTCOMES[case]
    result = evaluator.evaluate(task, source)
    assert (result.outcome, result.stage) == (outcome, stage), result.message
    assert result.message
    assert "\n" not in result.message
    assert result.speedup is None
    assert Evaluation.model_validate_json(result.model_dump_json()) == result


def test_a_fault_names_its_place_once(evaluator, task):
    text = feedback(task, evaluator.evaluate(task, HEAD + OUT_OF_BOUNDS))
    assert text.count("workgroup") == text.count("candidate.py:") == 1, text


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ("    return _softmax(x).view(-1)", Outcome.WRONG_METADATA),
        ("    return _softmax(x), x", Outcome.WRONG_METADATA),
        ("    x.zero_()\n    return _softmax(x)", Outcome.WRONG_METADATA),
        ("    out = _softmax(x)\n    out[-1].zero_()\n    return out", Outcome.WRONG_VALUES),
        ("    return _softmax(x.t()).t()", Outcome.WRONG_METADATA),
    ],
    ids=["shape", "one more", "input written", "last row", "strides"],
)
def test_a_right_kernel_with_a_wrong_wrapper(evaluator, task, change, outcome):
    result = evaluator.evaluate(task, _wrapping(task, f"\ndef softmax(x):\n{change}\n"))
    assert result.outcome is outcome, result.message


def test_wrong_values_name_the_element(evaluator, task):
    source = _wrapping(
        task, "\ndef softmax(x):\n    o = _softmax(x)\n    o[2, 5:6].fill_(0.5)\n    return o\n"
    )
    result = evaluator.evaluate(task, source)
    failed = next(w for w in result.workloads if not w.passed)
    assert (failed.element.output, failed.element.index) == ("out", (2, 5))
    assert failed.element.found == 0.5
    assert abs(failed.element.expected - 0.5) > failed.element.tolerance


def test_a_kernel_for_the_shapes_shown_fails_on_the_others(evaluator, task):
    problem = task.problem
    fixed = train_workloads(problem, "sim") + adversarial_workloads(problem, "sim", "triton")
    shapes = {(w.dims["rows"], w.dims["cols"]) for w in fixed}
    source = _wrapping(task, TRAIN_SHAPES_ONLY.format(shapes=shapes))
    result = evaluator.evaluate(task, source)
    assert (result.outcome, result.stage) == (Outcome.UNSEEN_FAILED, Stage.UNSEEN)
    assert all(w.passed for w in result.by_split(Split.TRAIN))
    hidden = [w for w in result.by_split(Split.UNSEEN) if not w.passed]
    assert len(hidden) == 7
    assert "rows" not in result.message


def test_a_candidate_that_remembers_its_calls_is_refused(evaluator, task):
    result = evaluator.evaluate(task, _wrapping(task, SLOWER_AT_FIRST))
    assert (result.outcome, result.stage) == (Outcome.RUNTIME_ERROR, Stage.TRAIN)
    assert "two recordings of one call differ" in result.message


def test_a_time_below_the_data_sheet_is_a_hack(evaluator, task, monkeypatch):
    """Physics decides whatever the cause: here a data sheet a million times too modest."""
    slow = replace(evaluator.device.description.spec, memory_bandwidth=5.3e6)
    slow_device = replace(evaluator.device.description, spec=slow)
    monkeypatch.setattr(evaluator.device, "description", slow_device)
    result = evaluator.evaluate(task, task.baseline_source)
    assert (result.outcome, result.stage) == (Outcome.HACK, Stage.TIME)
    assert "physics" in result.message


def test_the_right_answer_without_a_kernel_is_a_hack(evaluator):
    source = "def transpose(x): return x.t().contiguous()"  # the device's copy does the work
    result = evaluator.evaluate(get_task("triton2triton/transpose"), source)
    assert (result.outcome, result.stage) == (Outcome.HACK, Stage.TRAIN)


def test_a_device_that_cannot_start_is_a_failure_of_ours(task, monkeypatch):
    from kernel_gym.devices.sim import session as sim

    monkeypatch.setattr(sim, "MEMORY", 1024)  # no workload fits
    with Evaluator(device="sim:gfx942", seed=0) as evaluator:
        result = evaluator.evaluate(task, task.baseline_source)
    assert result.outcome is Outcome.INFRA
    assert "does not fit" in result.message


@pytest.mark.parametrize(
    ("usable", "outcome"), [(True, Outcome.RUNTIME_ERROR), (False, Outcome.INFRA)]
)
def test_a_device_that_nobody_can_use_was_not_lost_by_the_candidate(
    evaluator, task, monkeypatch, usable, outcome
):
    def fails(*_, **__):
        raise DeviceLostError("the memory is used up")

    monkeypatch.setattr(evaluator.device, "open", fails)
    monkeypatch.setattr(evaluator.device, "usable", lambda _: usable)
    result = evaluator.evaluate(task, task.baseline_source)
    assert result.outcome is outcome
    assert "the memory is used up" in result.message
    assert ("run fewer evaluators" in result.message) is not usable


def test_what_a_lost_try_held_is_free_before_the_next(evaluator, task, monkeypatch):
    class Held:
        """A tensor on the device."""

    held = []

    def fails(*_, **__):
        mine = Held()
        held.append(weakref.ref(mine))
        try:
            raise MemoryError
        except MemoryError as error:
            raise DeviceLostError("the memory is used up") from error

    def usable(_):
        assert [one() for one in held] == [None] * len(held)
        return True

    monkeypatch.setattr(evaluator.device, "open", fails)
    monkeypatch.setattr(evaluator.device, "usable", usable)
    assert evaluator.evaluate(task, task.baseline_source).outcome is Outcome.RUNTIME_ERROR
    assert len(held) == 2


def test_a_lost_device_is_tried_again_however_late(evaluator, task, monkeypatch):
    tries = []

    def fails(*_, **__):
        tries.append(1)
        raise DeviceLostError("the memory is used up")

    monkeypatch.setattr("kernel_gym.evaluator.RETRIES", replace(RETRIES, seconds=0.0))
    monkeypatch.setattr(evaluator.device, "open", fails)
    monkeypatch.setattr(evaluator.device, "usable", lambda _: True)
    assert evaluator.evaluate(task, task.baseline_source).outcome is Outcome.RUNTIME_ERROR
    assert len(tries) == 2  # the second loss is the candidate's: no clock decides that


HOSTILE = {
    "exit": "def softmax(x): raise SystemExit(0)",
    "os exit": "import posix\ndef softmax(x): posix._exit(0)",
    "exit at import": "import posix\nposix._exit(0)",
    "segfault": (
        "import numpy as np\nfrom numpy.lib.stride_tricks import as_strided\n"
        "def softmax(x): as_strided(np.zeros(1), (1 << 40,), (8,))[1 << 39] = 1"
    ),
    "memory": "def softmax(x):\n    held = []\n    while True: held.append(bytearray(1 << 27))",
    "prints": "def softmax(x):\n    for _ in range(100): print('x' * (1 << 20))",
    "recursion": "def softmax(x): return softmax(x)",
    "forks": "import posix\ndef softmax(x):\n    for _ in range(8): posix.fork()",
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_code_costs_its_own_evaluation_only(evaluator, task, case):
    result = evaluator.evaluate(task, HOSTILE[case])
    assert result.outcome in (Outcome.RUNTIME_ERROR, Outcome.WRONG_METADATA), result.message
    assert evaluator.evaluate(task, task.baseline_source).outcome is Outcome.PASSED


def test_a_host_loop_ends_at_its_limit(evaluator, task, monkeypatch):
    from kernel_gym.devices.sim import planned_session

    monkeypatch.setattr(planned_session, "CALL_SECONDS", 2.0)
    result = evaluator.evaluate(task, "def softmax(x):\n    while True: pass\n")
    assert (result.outcome, result.stage) == (Outcome.TIMEOUT, Stage.TRAIN)


@pytest.mark.parametrize("mode", ["hip2hip", "torch2hip"])
def test_hip_candidates(evaluator, mode):
    if "hip" not in evaluator.device.description.languages:
        pytest.skip(
            "no HIP toolchain: apt-get install clang-19 lld-19 rocm-device-libs libamdhip64-dev"
        )
    from kernel_gym.tasks.task import kernel_path

    task = get_task(f"{mode}/transpose")
    source = kernel_path(task.problem, "hip").read_text()
    result = evaluator.evaluate(task, source)
    assert result.outcome is Outcome.PASSED, (result.message, result.detail)
    broken = evaluator.evaluate(task, source.replace("__global__", "__globl__", 1))
    assert broken.outcome is Outcome.COMPILE_ERROR
    assert "error:" in broken.detail


ONE_LONG_ROW = 39
"""A seed that draws a workload of one row. The sum of that row depends on the threads of PyTorch so
much that the recorded error of the example `3_good` does."""


@pytest.mark.slow
def test_a_record_does_not_depend_on_the_threads_of_its_judge():
    path = ROOT / "kernel_gym" / "policies" / "examples" / TASK / "3_good.py"
    source, before = path.read_text(encoding="utf-8"), torch.get_num_threads()
    records = set()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            with Evaluator("sim:gfx942", secret=PUBLIC) as evaluator:
                record = evaluator.evaluate(get_task(TASK), source, ONE_LONG_ROW)
            assert torch.get_num_threads() == threads
            assert any(w.dims["rows"] == 1 for w in record.by_split(Split.UNSEEN))
            records.add(record.canonical())
    finally:
        torch.set_num_threads(before)
    assert len(records) == 1


class DoubledSum(type(get_problem("row_sum"))):
    """A problem with the name of another one and other answers."""

    def oracle(self, x):
        """Twice the sum."""
        return tuple(2 * value for value in super().oracle(x))

    def reference(self, x):
        """Twice the sum."""
        return (2 * torch.sum(x, dim=1),)


def test_tasks_with_equal_names_are_judged_by_their_own_answers():
    first = get_task("torch2triton/row_sum")
    second = Task(DoubledSum(), Mode.TORCH2TRITON)
    assert first.id == second.id
    with Evaluator("sim:gfx942", seed=0, secret=PUBLIC) as evaluator:
        right = evaluator.evaluate(first, first.kernel_source)
        wrong = evaluator.evaluate(second, first.kernel_source)
    assert right.outcome is Outcome.PASSED
    assert (wrong.outcome, wrong.stage) == (Outcome.WRONG_VALUES, Stage.TRAIN)
