"""Tasks that require FlyDSL: what they accept, what they refuse, and what their prompts say."""

from __future__ import annotations

import importlib.util
import json

import pytest
from typer.testing import CliRunner

from kernel_gym.cli import app
from kernel_gym.evaluator import Evaluator
from kernel_gym.policies.evaluate import runnable
from kernel_gym.records import Outcome, Stage
from kernel_gym.tasks import Mode, get_problem, get_task, problem_names, prompt, task_ids
from kernel_gym.tasks.copies import is_copy
from kernel_gym.tasks.embedded import embedded_kernel
from kernel_gym.tasks.guide import guide
from kernel_gym.tasks.status import Status
from kernel_gym.tasks.verdicts import kernel_digest, status_of, stored_verdict

DEVICE = "sim:gfx942"
MODES = (Mode.FLYDSL2FLYDSL, Mode.TORCH2FLYDSL)
NAMES = [name for name in problem_names() if embedded_kernel("flydsl", name)]
TRITON = get_task("triton2triton/add").kernel_source
MISSING = "flydsl is missing; pip install 'kernel-gym[flydsl]'"

needs_flydsl = pytest.mark.skipif(
    importlib.util.find_spec("flydsl") is None, reason="FlyDSL is not installed"
)


@pytest.fixture(scope="module")
def evaluator():
    with Evaluator(device=DEVICE, seed=0) as made:
        yield made


@pytest.fixture
def without_flydsl(monkeypatch):
    find = importlib.util.find_spec
    hidden = lambda name, *rest: None if name == "flydsl" else find(name, *rest)  # noqa: E731
    monkeypatch.setattr(importlib.util, "find_spec", hidden)


def test_each_problem_with_a_kernel_has_both_modes():
    assert len(NAMES) == 13
    expected = {f"{mode}/{name}" for mode in MODES for name in NAMES}
    assert {name for name in task_ids() if name.partition("/")[0] in MODES} == expected


@pytest.mark.parametrize("name", NAMES)
def test_each_task_has_a_verdict_on_its_present_kernel(name):
    for mode in MODES:
        assert status_of(get_task(f"{mode}/{name}")) in (Status.ADMITTED, Status.SATURATED)
        assert len(kernel_digest(get_problem(name), mode)) == 64
    assert kernel_digest(get_problem(name), Mode.TRITON2TRITON) == ""


def test_a_verdict_falls_with_the_kernel_and_those_of_other_modes_stay(monkeypatch):
    problem = get_problem("softmax")
    before = stored_verdict(problem)
    monkeypatch.setattr("kernel_gym.tasks.problem.embedded_kernel", lambda *_: "another kernel")
    after = stored_verdict(problem)
    assert before is not None
    assert after is not None
    assert all(set(MODES) <= set(before.devices[d]) for d in [DEVICE])
    for device, modes in before.devices.items():
        assert set(after.devices[device]) == set(modes) - set(MODES)
    assert after.status(Mode.FLYDSL2FLYDSL) is Status.UNKNOWN


@needs_flydsl
@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_the_kernel_passes_and_a_wrong_one_does_not(evaluator, mode):
    task = get_task(f"{mode}/add")
    right = evaluator.evaluate(task, task.kernel_source)
    assert (right.outcome, right.message) == (Outcome.PASSED, "")
    if mode is Mode.FLYDSL2FLYDSL:
        assert right.speedup == pytest.approx(1.0, abs=0.01)
    changed = task.kernel_source.replace("if col < cols:", "if col < cols - 1:")
    assert changed != task.kernel_source
    assert evaluator.evaluate(task, changed).outcome is Outcome.WRONG_VALUES


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("source", "found"),
    [
        (TRITON, "Triton"),
        (get_problem("add").reference_source(), "PyTorch"),
        (get_problem("layer_norm").gluon_kernel, "Gluon"),
        (embedded_kernel("tilelang", "add"), "TileLang"),
        (get_problem("transpose").kernel("hip"), "HIP"),
    ],
    ids=["triton", "pytorch", "gluon", "tilelang", "hip"],
)
def test_another_language_is_refused_in_screening(evaluator, mode, source, found):
    result = evaluator.evaluate(get_task(f"{mode}/add"), source)
    assert (result.outcome, result.stage) == (Outcome.SCREENED, Stage.SCREEN)
    assert result.message == (
        f"found a source in {found}, expected one in FlyDSL: import flydsl and write @flyc.kernel "
        "kernels, or choose a task in another mode"
    )


@needs_flydsl
@pytest.mark.slow
def test_a_launch_by_triton_is_refused_however_the_source_looks(evaluator):
    result = evaluator.evaluate(get_task("torch2flydsl/add"), f"import flydsl\n{TRITON}")
    assert result.outcome is Outcome.RUNTIME_ERROR
    assert "found a launch of a kernel in Triton, expected FlyDSL alone" in result.message
    assert "@flyc.kernel" in result.message


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["softmax", "matmul_nt"])
def test_prompts_speak_of_flydsl_alone(mode, name):
    task = get_task(f"{mode}/{name}")
    text = prompt(task, "a device", arch="gfx942", embedded=["flydsl", "tilelang"])
    assert ", in FlyDSL, for the device below." in text
    assert "launches your own `@flyc.kernel` kernels" in text
    assert (task.kernel_source.rstrip() in text) is (mode is Mode.FLYDSL2FLYDSL)
    assert "fx.coop.BlockReduce" in text
    assert ("mfma_f32_16x16x16f16" in text.split("## Approach")[1]) is (name == "matmul_nt")
    assert guide("gfx942", "flydsl", ["rows"]).splitlines()[0] in text
    assert "A wavefront is 64 lanes" in text
    for other in ("triton", "gluon", "tilelang", "tl."):
        assert other not in text.lower()


def test_without_flydsl_the_tasks_are_listed_with_the_cure(without_flydsl):
    args = [word for mode in MODES for word in ("--mode", str(mode))]
    rows = json.loads(CliRunner().invoke(app, ["tasks", "list", *args, "--json"]).stdout)
    assert len(rows) == 26
    assert {(row["language"], row["missing"]) for row in rows} == {("flydsl", MISSING)}
    shown = CliRunner().invoke(app, ["tasks", "list", *args]).output
    assert f"26 tasks cannot be evaluated here: {MISSING}" in shown
    assert MISSING in CliRunner().invoke(app, ["tasks", "show", "torch2flydsl/add"]).output
    notes: list[str] = []
    tasks = [get_task("torch2flydsl/add"), get_task("triton2triton/add")]
    assert runnable(tasks, DEVICE, notes.append) == tasks[1:]
    assert f"skipped, {MISSING}: torch2flydsl/add" in notes


def test_a_copy_of_the_start_kernel_is_known_as_one():
    task = get_task("flydsl2flydsl/softmax")
    assert is_copy(task, f"# mine\n{task.start_source}")
    assert not is_copy(task, get_task("flydsl2flydsl/row_sum").start_source)
    assert not is_copy(get_task("torch2flydsl/softmax"), task.start_source)
