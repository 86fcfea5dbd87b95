"""Workloads that need more memory than a GPU has are named before anything runs."""

from types import SimpleNamespace

import pytest

from kernel_gym.imports.authoring.request import TracingRequest
from kernel_gym.imports.authoring.write import trace_problem
from kernel_gym.imports.bench.compiled.process import Missing, MissingMemory
from kernel_gym.imports.bench.full_size import judged_bytes, too_large
from kernel_gym.imports.bench.traced import admit_traced
from kernel_gym.imports.manifest import CompiledBaseline, ImportStatus
from kernel_gym.imports.traced.loading import load_text
from kernel_gym.records import Clock
from kernel_gym.tasks import Scale
from kernel_gym.tasks.names import Mode
from kernel_gym.tasks.task import Task
from tests.imports.bench.compiled.test_compiled import MODULE

GIB = 1 << 30
LARGE = MODULE.replace("rows = 64", "rows = 4096").replace("width = 128", "width = 131072")


@pytest.fixture(scope="module")
def problem():
    request = TracingRequest(
        {"problem.py": LARGE},
        "problem.py:Model",
        "problem.py:get_inputs",
        "problem.py:get_init_inputs",
    )
    return load_text("model_new", trace_problem(request, "model_new", "a test").problem)


def description(total, shared):
    return SimpleNamespace(
        total_memory=total * GIB,
        shared_memory=shared * GIB,
        scale=Scale.FULL,
        clock=Clock.MEASURED,
    )


def test_two_sets_of_a_timed_workload_must_fit_the_shared_memory(problem):
    text = too_large(problem, description(80, 4))
    assert text.startswith("needs more memory than there is: width=131072 rows=4096 ")
    assert text.endswith(
        "takes 4.0 GiB for 2 sets of inputs and outputs, and workers share 4.0 GiB "
        "(KERNEL_GYM_ARENA_GIB)"
    )


def test_the_judge_needs_memory_too(problem):
    assert "in the judge beside shared memory, of 5.0 GiB" in too_large(
        problem, description(24, 16)
    )
    assert too_large(problem, description(96, 16)) == ""
    assert too_large(problem, description(0, 0)) == ""  # a device without a limit


def test_the_judge_holds_inputs_twice_and_operators_in_fp64(problem):
    dims = {"rows": 1024, "width": 1024}
    own = 4 << 20
    exact = 4 * 2 * own  # the input, the product, the sum and the rectified sum in fp64
    assert 2 * own + exact < judged_bytes(problem, dims) < 2 * own + exact + (1 << 20)


class Opened:
    """A GPU whose measurements are given."""

    def __init__(self, total=96, shared=16, **steps):
        self.evaluator = SimpleNamespace(
            device=SimpleNamespace(description=description(total, shared))
        )
        self.rooms = SimpleNamespace(of_reference=lambda problem: 2.5)
        self.compiled = SimpleNamespace(
            refusals=steps.get("refusals", lambda *_: []),
            measure=lambda *_: CompiledBaseline(eager_seconds=(3.0,), compiled_seconds=(2.0,)),
        )


def fails(error):
    def step(*_):
        raise error

    return step


def test_a_gpu_gives_measured_figures(problem):
    verdict = admit_traced(Task(problem, Mode.TORCH2TRITON), Opened())
    assert verdict.status is ImportStatus.ADMITTED, verdict.reason
    assert verdict.compiled.speedup == pytest.approx(1.5)
    assert verdict.notes[0] == "head-room 2.50"


@pytest.mark.parametrize(
    ("opened", "status", "reason"),
    [
        (Opened(shared=4), ImportStatus.UNSUPPORTED, "needs more memory than there is: width="),
        (
            Opened(refusals=fails(MissingMemory("rows=1: the check"))),
            ImportStatus.UNSUPPORTED,
            "needs more memory than there is: rows=1: the check",
        ),
        (
            Opened(refusals=fails(Missing("no such operator"))),
            ImportStatus.UNSUPPORTED,
            "its reference does not run on the device: no such operator",
        ),
        (
            Opened(refusals=lambda *_: ["on rows=1: NaN"]),
            ImportStatus.FLAGGED,
            "at full size the reference fails on rows=1: NaN",
        ),
    ],
    ids=["too large", "no memory", "fails", "wrong"],
)
def test_what_a_gpu_cannot_do_is_named(problem, opened, status, reason):
    verdict = admit_traced(Task(problem, Mode.TORCH2TRITON), opened)
    assert verdict.status is status
    assert verdict.reason.startswith(reason)
    assert verdict.flags == (("fails at full size",) if status is ImportStatus.FLAGGED else ())
