"""Names, tasks and suites, and the messages for unknown and malformed ones."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import pytest

from kernel_gym.tasks import (
    Mode,
    SuiteError,
    TasksPathError,
    UnknownName,
    add_tasks_path,
    get_problem,
    get_task,
    load_suite,
    problem_names,
    registry,
    shapes,
    suites,
    task_ids,
)
from kernel_gym.tasks.embedded import EXTRAS, embedded_kernel
from kernel_gym.tasks.generated import problem
from kernel_gym.tasks.names import EXTRA_OF_MODE, LANGUAGES, require_task
from kernel_gym.tasks.problems import TASKS_PATH
from kernel_gym.tasks.task import kernel_path, modes_of
from tests.admission.outside import copy_problem


def test_problems_are_imported_when_asked_for():
    code = (
        "import sys; import kernel_gym.tasks as t; names = t.problem_names();"
        "assert len(names) >= 12; t.get_problem('softmax');"
        "print([m for m in sys.modules if m.endswith('.problem') and '.problems.' in m])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "['kernel_gym.tasks.problems.softmax.problem']"


def test_a_mode_exists_where_its_kernel_is():
    assert Mode.HIP2HIP in modes_of(get_problem("transpose"))
    assert Mode.TORCH2HIP in modes_of(get_problem("transpose"))
    assert modes_of(get_problem("matmul")) == (
        Mode.TRITON2TRITON,
        Mode.TORCH2TRITON,
        Mode.INSTRUCTION2TRITON,
    )
    for name in problem_names():
        problem = get_problem(name)
        has_hip = kernel_path(problem, "hip").is_file()
        assert (f"hip2hip/{name}" in task_ids()) == has_hip
        assert f"triton2triton/{name}" in task_ids()


def test_task_facts_by_mode():
    given = get_task("triton2triton/softmax")
    assert (given.language, given.baseline, given.entry) == ("triton", "triton", "softmax")
    assert given.start_source == given.baseline_source
    assert "def softmax(" in given.baseline_source
    hip = get_task("hip2hip/transpose")
    assert (hip.language, hip.baseline) == ("hip", "hip")
    assert 'extern "C" int transpose(' in hip.baseline_source
    torch_only = get_task("torch2hip/rope")
    assert (torch_only.language, torch_only.baseline) == ("hip", "torch")
    assert torch_only.baseline_source is None
    assert torch_only.start_source is None


@pytest.mark.parametrize("package", EXTRAS)
def test_a_task_may_require_a_language_inside_of_python(package):
    given, startless = (
        get_task(f"{package}2{package}/softmax"),
        get_task(f"torch2{package}/softmax"),
    )
    for task in (given, startless):
        assert (task.language, task.extra, task.written_in) == ("triton", package, package)
        assert task.kernel_source == embedded_kernel(package, "softmax")
        assert task.gluon_source is task.embedded_source(package) is None
    assert (given.baseline, startless.baseline) == (package, "torch")
    assert given.start_source == given.baseline_source == given.kernel_source
    assert startless.start_source is startless.baseline_source is None
    other = get_task("triton2triton/softmax")
    assert (other.extra, other.written_in) == ("", "triton")
    assert given.mode not in modes_of(get_problem("matmul"))


def test_a_mode_says_by_its_name_what_it_starts_from_and_is_written_in():
    with_start = {mode for mode in Mode if mode.has_start_kernel}
    names = ("triton", "hip", *EXTRAS)
    assert with_start == {f"{name}2{name}" for name in names}
    assert {mode.written_in for mode in Mode} == set(names)
    assert {LANGUAGES[mode] for mode in EXTRA_OF_MODE} == {"triton"}
    assert EXTRA_OF_MODE[Mode.TORCH2FLYDSL] == "flydsl"
    assert {Mode.TORCH2TRITON, Mode.INSTRUCTION2TRITON, Mode.HIP2HIP}.isdisjoint(EXTRA_OF_MODE)


def test_tasks_survive_pickling():
    task = get_task("hip2hip/row_argmax")
    copy = pickle.loads(pickle.dumps(task))
    assert copy == task
    assert hash(copy) == hash(task)
    assert str(copy) == "hip2hip/row_argmax"


@pytest.mark.parametrize(
    ("call", "name", "near"),
    [
        (get_problem, "sofmax", "softmax"),
        (get_task, "triton2triton/sofmax", "triton2triton/softmax"),
        (get_task, "triton2trton/matmul", "triton2triton/matmul"),
        (get_task, "hip2hip/matmul", "hip2hip/"),
        (load_suite, "quickstrat", "quickstart"),
    ],
)
def test_unknown_names_list_near_matches(call, name, near):
    with pytest.raises(UnknownName) as caught:
        call(name)
    assert isinstance(caught.value, KeyError)
    assert repr(name) in str(caught.value)
    assert "did you mean" in str(caught.value)
    assert near in str(caught.value)


@pytest.mark.parametrize("call", [get_task, load_suite, require_task])
@pytest.mark.parametrize("name", ["own-swish-gate/swish_gate", "geak/softmax"])
def test_a_task_that_was_imported_elsewhere_names_the_variable_of_its_folder(call, name):
    with pytest.raises(UnknownName) as caught:
        call(name)
    suite = name.partition("/")[0]
    hint = f"set KERNEL_GYM_IMPORTS to the folder with {suite}.json"
    assert str(caught.value).endswith(f"no suite {suite!r} was imported here: {hint}")


def test_a_suite_of_an_own_file_that_was_imported_elsewhere_names_the_variable():
    with pytest.raises(UnknownName, match=r"KERNEL_GYM_IMPORTS to the folder with own-x\.json"):
        load_suite("own-x")


def test_an_unknown_name_without_relatives_lists_some_of_what_there_is():
    with pytest.raises(UnknownName, match=r"known: .* and \d+ more"):
        get_problem("zzzzzzzz")


def test_unknown_name_survives_pickling():
    error = UnknownName("problem", "sofmax", ["softmax", "gelu"])
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_quickstart_has_its_twelve_tasks():
    assert "quickstart" in suites()
    suite = load_suite("quickstart")
    assert suite.name == "quickstart"
    assert len(suite.tasks) == 12
    left_out = {Mode.INSTRUCTION2TRITON, *EXTRA_OF_MODE}
    assert {task.mode for task in suite.tasks} == set(Mode) - left_out


GOOD = 'name = "mine"\nsummary = "two"\ntasks = ["triton2triton/softmax", "hip2hip/transpose"]\n'


def test_a_suite_from_a_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(GOOD)
    assert [t.id for t in load_suite(path).tasks] == ["triton2triton/softmax", "hip2hip/transpose"]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('name = "x"\nsummary = "y"\n', ["'tasks'", "found nothing", "expected"]),
        (GOOD + "colour = 3\n", ["'colour'", "unknown key", "name, summary, tasks"]),
        (GOOD.replace('"mine"', "7"), ["'name'", "found 7", "expected", "string"]),
        (GOOD.replace("/softmax", "/sofmax"), ["'tasks.0'", "sofmax", "triton2triton/softmax"]),
        (GOOD.replace("hip2hip/transpose", "triton2triton/softmax"), ["'tasks.1'", "twice"]),
        ("name = \n", ["invalid TOML"]),
    ],
)
def test_a_malformed_suite_says_where_and_what(tmp_path, text, parts):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(SuiteError) as caught:
        load_suite(str(path))
    for part in [str(path), *parts]:
        assert part in str(caught.value)


def test_a_folder_of_problems_must_hold_some(tmp_path):
    with pytest.raises(TasksPathError, match=r"found no <name>/problem\.py"):
        add_tasks_path(tmp_path)


def test_a_problem_outside_must_not_take_a_name(tmp_path, monkeypatch):
    monkeypatch.setenv(TASKS_PATH, "")
    copy_problem("softmax", "softmax", tmp_path)
    with pytest.raises(TasksPathError, match="'softmax' is the name of another problem"):
        add_tasks_path(tmp_path)
    assert os.environ[TASKS_PATH] == ""


def test_problems_outside_reach_other_processes(tmp_path, monkeypatch):
    monkeypatch.setenv(TASKS_PATH, "")
    copy_problem("transpose", "far_transpose", tmp_path)
    add_tasks_path(tmp_path)
    add_tasks_path(tmp_path)
    assert os.environ[TASKS_PATH] == str(tmp_path)
    task = get_task("hip2hip/far_transpose")
    assert "far_transpose" in problem_names()
    code = "import pickle, sys; print(pickle.loads(sys.stdin.buffer.read()).problem.name)"
    run = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(task), capture_output=True, check=True
    )
    assert run.stdout.decode().strip() == "far_transpose"


@pytest.mark.parametrize(
    "cached", [registry._find_task, problem.generated_problem, problem._compiled, shapes._parsed]
)
def test_names_that_requests_give_fill_no_cache_without_end(cached):
    maxsize = cached.cache_info().maxsize
    assert maxsize is not None
    assert maxsize <= 4096


def test_a_task_is_found_again_after_the_cache_dropped_it():
    task_id = "triton2triton/generated:seed=0,depth=3"
    before = get_task(task_id)
    assert get_task(task_id) is before
    registry._find_task.cache_clear()
    problem.generated_problem.cache_clear()
    assert get_task(task_id).start_source == before.start_source
