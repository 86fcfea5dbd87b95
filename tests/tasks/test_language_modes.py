"""Tasks that require FlyDSL or TileLang: what they accept and refuse, and what prompts say."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass

import pytest
from typer.testing import CliRunner

from kernel_gym.cli import app
from kernel_gym.devices import describe
from kernel_gym.evaluator import Evaluator
from kernel_gym.policies.evaluate import runnable
from kernel_gym.records import Outcome, Stage
from kernel_gym.tasks import Mode, get_problem, get_task, problem_names, prompt, task_ids
from kernel_gym.tasks.copies import is_copy
from kernel_gym.tasks.embedded import EXTRAS, KERNELS, embedded_kernel
from kernel_gym.tasks.guide import guide
from kernel_gym.tasks.names import EXTRA_OF_MODE
from kernel_gym.tasks.status import Status
from kernel_gym.tasks.verdicts import kernel_digest, status_of, stored_verdict

DEVICE = "sim:gfx942"
TRITON = get_task("triton2triton/add").kernel_source


@dataclass(frozen=True)
class Language:
    """A language inside of Python with two modes of its own."""

    package: str
    problems: int
    rows: str
    """A word of its guide that prompts on statistics of rows have."""
    product: str
    """A word of its guide that prompts on matrix products alone have."""

    @property
    def name(self) -> str:
        return EXTRAS[self.package]

    @property
    def modes(self) -> tuple[Mode, Mode]:
        return Mode(f"{self.package}2{self.package}"), Mode(f"torch2{self.package}")

    @property
    def names(self) -> list[str]:
        return [name for name in problem_names() if embedded_kernel(self.package, name)]

    @property
    def missing(self) -> str:
        return f"{self.package} is missing; pip install 'kernel-gym[{self.package}]'"

    @property
    def cure(self) -> str:
        return f"write {KERNELS[self.package]} kernels, or choose a task in another mode"


LANGUAGES = (
    Language("flydsl", 13, "fx.coop.BlockReduce", "mfma_f32_16x16x16f16"),
    Language("tilelang", 11, "T.reduce_sum", "T.gemm"),
)
TASKS = [(language, mode) for language in LANGUAGES for mode in language.modes]
OTHERS = {
    "Triton": TRITON,
    "PyTorch": get_problem("add").reference_source(),
    "Gluon": get_problem("layer_norm").gluon_kernel,
    "HIP": get_problem("transpose").kernel("hip"),
    **{each.name: embedded_kernel(each.package, "add") for each in LANGUAGES},
}
"""A source in each language."""

of_each_language = pytest.mark.parametrize("language", LANGUAGES, ids=lambda one: one.package)
IDS = [str(mode) for _, mode in TASKS]
of_each_mode = pytest.mark.parametrize(("language", "mode"), TASKS, ids=IDS)


def require(language: Language) -> None:
    """Skips a test if candidates in a language cannot be built here."""
    if language.package not in describe(DEVICE).embedded:
        pytest.skip(f"{language.name} or its compiler is not installed")


@pytest.fixture(scope="module")
def evaluator():
    with Evaluator(device=DEVICE, seed=0) as made:
        yield made


@pytest.fixture
def hide(monkeypatch):
    """Hides a package, as if it was not installed."""

    def hidden(package):
        find = importlib.util.find_spec
        spec = lambda name, *rest: None if name == package else find(name, *rest)  # noqa: E731
        monkeypatch.setattr(importlib.util, "find_spec", spec)

    return hidden


def test_each_language_inside_of_python_has_two_modes():
    assert {language.package for language in LANGUAGES} == set(EXTRAS)
    assert set(EXTRA_OF_MODE) == {mode for _, mode in TASKS}


@of_each_language
def test_each_problem_with_a_kernel_has_both_modes(language):
    assert len(language.names) == language.problems
    expected = {f"{mode}/{name}" for mode in language.modes for name in language.names}
    assert {name for name in task_ids() if name.partition("/")[0] in language.modes} == expected


@of_each_mode
def test_each_task_has_a_verdict_on_its_present_kernel(language, mode):
    for name in language.names:
        assert status_of(get_task(f"{mode}/{name}")) in (Status.ADMITTED, Status.SATURATED), name
        assert len(kernel_digest(get_problem(name), mode)) == 64
        assert kernel_digest(get_problem(name), Mode.TRITON2TRITON) == ""


@of_each_language
def test_a_verdict_falls_with_the_kernel_and_those_of_other_modes_stay(monkeypatch, language):
    problem = get_problem("softmax")
    before = stored_verdict(problem)
    changed = lambda package, name: (  # noqa: E731
        "another kernel" if package == language.package else embedded_kernel(package, name)
    )
    monkeypatch.setattr("kernel_gym.tasks.problem.embedded_kernel", changed)
    after = stored_verdict(problem)
    assert before is not None
    assert after is not None
    assert set(language.modes) <= set(before.devices[DEVICE])
    for device, modes in before.devices.items():
        assert set(after.devices[device]) == set(modes) - set(language.modes)
    assert after.status(language.modes[0]) is Status.UNKNOWN


@pytest.mark.slow
@of_each_mode
def test_the_kernel_passes_and_a_wrong_one_does_not(evaluator, language, mode):
    require(language)
    task = get_task(f"{mode}/add")
    right = evaluator.evaluate(task, task.kernel_source)
    assert (right.outcome, right.message) == (Outcome.PASSED, "")
    if mode.has_start_kernel:
        assert right.speedup == pytest.approx(1.0, abs=0.01)
    changed = task.kernel_source.replace("if col < cols:", "if col < cols - 1:")
    assert changed != task.kernel_source
    assert evaluator.evaluate(task, changed).outcome is Outcome.WRONG_VALUES


@pytest.mark.parametrize(
    ("language", "mode", "found"),
    [(*task, found) for task in TASKS for found in OTHERS if found != task[0].name],
)
def test_another_language_is_refused_in_screening(evaluator, language, mode, found):
    result = evaluator.evaluate(get_task(f"{mode}/add"), OTHERS[found])
    assert (result.outcome, result.stage) == (Outcome.SCREENED, Stage.SCREEN)
    assert result.message == (
        f"found a source in {found}, expected one in {language.name}: "
        f"import {language.package} and {language.cure}"
    )


@of_each_mode
def test_two_languages_in_one_source_are_refused_in_screening(evaluator, language, mode):
    (other,) = (one for one in LANGUAGES if one is not language)
    source = f"import {other.package}\n{embedded_kernel(language.package, 'add')}"
    result = evaluator.evaluate(get_task(f"{mode}/add"), source)
    assert (result.outcome, result.stage) == (Outcome.SCREENED, Stage.SCREEN)
    assert result.message == (
        f"found an import of {other.package}, expected {language.name} alone: {language.cure}"
    )


@of_each_language
def test_an_import_that_the_screen_does_not_see_is_refused_where_it_happens(evaluator, language):
    require(language)
    (other,) = (one for one in LANGUAGES if one is not language)
    source = f"x = 1; import {other.package}\n{embedded_kernel(language.package, 'add')}"
    result = evaluator.evaluate(get_task(f"torch2{language.package}/add"), source)
    assert (result.outcome, result.stage) == (Outcome.COMPILE_ERROR, Stage.BUILD)
    assert (
        f"found an import of {other.package}, expected {language.name} alone: {language.cure}"
        in result.message
    )


@pytest.mark.slow
@of_each_language
def test_a_launch_by_triton_is_refused_however_the_source_looks(evaluator, language):
    require(language)
    task = get_task(f"torch2{language.package}/add")
    result = evaluator.evaluate(task, f"import {language.package}\n{TRITON}")
    assert result.outcome is Outcome.RUNTIME_ERROR
    assert f"found a launch of a kernel in Triton, expected {language.name} alone" in result.message
    assert KERNELS[language.package] in result.message


@of_each_mode
@pytest.mark.parametrize("name", ["softmax", "matmul_nt"])
def test_prompts_speak_of_one_language_alone(language, mode, name):
    task = get_task(f"{mode}/{name}")
    text = prompt(task, "a device", arch="gfx942", embedded=list(EXTRAS))
    assert f", in {language.name}, for the device below." in text
    assert f"launches your own `{KERNELS[language.package]}` kernels" in text
    assert (task.kernel_source.rstrip() in text) is mode.has_start_kernel
    assert language.rows in text
    assert (language.product in text.split("## Approach")[1]) is (name == "matmul_nt")
    assert guide("gfx942", language.package, ["rows"]).splitlines()[0] in text
    assert "A wavefront is 64 lanes" in text
    others = {"triton", "gluon", "tl.", *EXTRAS} - {language.package}
    assert not [other for other in others if other in text.lower()]


@of_each_language
def test_without_the_package_the_tasks_are_listed_with_the_cure(hide, language):
    hide(language.package)
    args = [word for mode in language.modes for word in ("--mode", str(mode))]
    rows = json.loads(CliRunner().invoke(app, ["tasks", "list", *args, "--json"]).stdout)
    assert len(rows) == 2 * language.problems
    assert {(row["language"], row["missing"]) for row in rows} == {
        (language.package, language.missing)
    }
    shown = CliRunner().invoke(app, ["tasks", "list", *args]).output
    assert f"{2 * language.problems} tasks cannot be evaluated here: {language.missing}" in shown
    one = f"torch2{language.package}/add"
    assert language.missing in CliRunner().invoke(app, ["tasks", "show", one]).output
    notes: list[str] = []
    tasks = [get_task(one), get_task("triton2triton/add")]
    assert runnable(tasks, DEVICE, notes.append) == tasks[1:]
    assert f"skipped, {language.missing}: {one}" in notes


@of_each_language
def test_a_copy_of_the_start_kernel_is_known_as_one(language):
    package = language.package
    task = get_task(f"{package}2{package}/softmax")
    assert is_copy(task, f"# mine\n{task.start_source}")
    assert not is_copy(task, get_task(f"{package}2{package}/row_sum").start_source)
    assert not is_copy(get_task(f"torch2{package}/softmax"), task.start_source)
