"""Suites by rule: their tasks, their coverage, and that no operator is on both sides."""

from __future__ import annotations

from collections import Counter

import pytest

from kernel_gym.tasks import (
    CATEGORIES,
    Mode,
    SuiteError,
    get_problem,
    get_task,
    load_suite,
    problem_names,
    suites,
    task_ids,
)
from kernel_gym.tasks.families import FAMILIES as OPERATORS
from kernel_gym.tasks.families import operator_family
from kernel_gym.tasks.models import FAMILIES
from kernel_gym.tasks.status import Status
from kernel_gym.tasks.suite import Rule, chosen_tasks, suite_rule
from kernel_gym.tasks.verdicts import HEAD_ROOM, head_room_on, status_of

BY_RULE = [name for name in suites() if suite_rule(name) is not None]


def test_there_is_a_suite_for_every_category_level_and_family():
    expected = {"core", "simulated", "train", "test", *(f"level-{i}" for i in range(1, 6))}
    expected |= {f"category-{name.lower()}" for name in CATEGORIES}
    expected |= {f"family-{name}" for name in FAMILIES}
    assert set(BY_RULE) == expected


def test_the_admitted_tasks_cover_the_field():
    tasks = load_suite("core").tasks
    problems = {task.problem.name: task.problem for task in tasks}.values()
    assert len(tasks) >= 600
    assert len(problems) >= 180
    assert {task.mode for task in tasks} == set(Mode)
    assert {problem.level for problem in problems} == set(range(1, 6))
    by_category = Counter(problem.category for problem in problems)
    assert {name for name in CATEGORIES if by_category[name] >= 8} == set(CATEGORIES)
    by_family = Counter(tag for problem in problems for tag in problem.tags)
    assert {name for name in FAMILIES if by_family[name] >= 4} == set(FAMILIES)
    assert len({t.problem.name for t in tasks if t.language == "hip"}) >= 90


@pytest.mark.parametrize("name", BY_RULE)
def test_a_suite_by_rule_holds_what_its_rule_says_and_is_admitted(name):
    rule = suite_rule(name)
    everything = [get_task(task_id) for task_id in task_ids()]
    admitted = [t for t in everything if rule.chooses(t) and status_of(t) is Status.ADMITTED]
    if not admitted:
        with pytest.raises(SuiteError, match="no admitted task fits"):
            load_suite(name)
        return
    assert list(load_suite(name).tasks) == admitted
    kind, _, value = name.partition("-")
    for task in admitted:
        if kind == "category":
            assert task.problem.category.lower() == value
        elif kind == "level":
            assert task.problem.level == int(value)
        elif kind == "family":
            assert value in task.problem.tags


def test_the_simulated_suite_leaves_out_what_no_kernel_can_win_there():
    chosen = set(load_suite("simulated").tasks)
    for task in load_suite("core").tasks:
        assert (task in chosen) == ((head_room_on(task, "sim:gfx942") or 0) > HEAD_ROOM), task.id
    assert get_task("torch2triton/gelu") not in chosen
    assert len(chosen) >= 500


def test_a_list_for_a_device_refuses_a_task_without_head_room_there(tmp_path):
    path = tmp_path / "mine.toml"
    listed = 'name = "mine"\nsummary = "two"\ntasks = ["{}"]\n{}'
    path.write_text(listed.format("torch2triton/gelu", ""))
    assert [task.id for task in load_suite(path).tasks] == ["torch2triton/gelu"]
    path.write_text(listed.format("torch2triton/gelu", 'head_room_on = "sim:gfx942"\n'))
    with pytest.raises(SuiteError, match=r"'tasks\.0'.*head-room of 1\.\d\d on sim:gfx942"):
        load_suite(path)
    path.write_text(listed.format("torch2triton/swiglu", 'head_room_on = "sim:gfx942"\n'))
    assert [task.id for task in load_suite(path).tasks] == ["torch2triton/swiglu"]


def test_a_rule_has_its_device_inside(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('name = "mine"\nsummary = "s"\nhead_room_on = "sim:gfx942"\nwhere = {}\n')
    with pytest.raises(SuiteError, match=r"'head_room_on'.*inside"):
        load_suite(path)


@pytest.mark.parametrize("task", load_suite("quickstart").tasks, ids=str)
def test_each_quickstart_task_is_admitted_with_head_room_on_the_simulator(task):
    assert status_of(task) is Status.ADMITTED
    assert head_room_on(task, "sim:gfx942") > HEAD_ROOM


def test_every_operator_family_is_on_one_side():
    train, test = suite_rule("train").operator, suite_rule("test").operator
    assert sorted((*train, *test)) == sorted(OPERATORS)


def test_no_operator_family_and_no_problem_is_on_both_sides():
    sides = [chosen_tasks(suite_rule(side)) for side in ("train", "test")]
    problems = [{task.problem.name for task in side} for side in sides]
    families = [{operator_family(task.problem) for task in side} for side in sides]
    assert all(problems)
    assert not problems[0] & problems[1]
    assert not families[0] & families[1]
    assert {t.id for side in sides for t in side} == {t.id for t in load_suite("core").tasks}
    assert len(problems[1]) >= 0.2 * (len(problems[0]) + len(problems[1]))


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("matmul", "product"),
        ("causal_attention", "attention"),
        ("softmax", "softmax"),
        ("cross_entropy", "softmax"),
        ("layer_norm", "normalisation"),
        ("add_rms_norm", "normalisation"),
        ("cumsum", "scan"),
        ("row_argmax", "reduction"),
        ("gelu", "pointwise"),
        ("rope", "pointwise"),
        ("transpose", "layout"),
    ],
)
def test_operator_families_follow_from_the_reference(name, family):
    assert operator_family(get_problem(name)) == family


def test_every_problem_has_a_family():
    assert {operator_family(get_problem(name)) for name in problem_names()} <= set(OPERATORS)


def test_filters_are_joined_and_values_are_alternatives():
    everything = Rule(status=())
    assert {t.id for t in chosen_tasks(everything)} == set(task_ids())
    rule = Rule(category=("Index", "Fusion"), mode=("hip2hip",), status=())
    chosen = {t.id for t in chosen_tasks(rule)}
    assert {"hip2hip/row_argmax", "hip2hip/rope"} <= chosen
    assert all(get_task(t).problem.category in ("Index", "Fusion") for t in chosen)
    assert not [t for t in chosen_tasks(Rule(family=("protein",), level=(1,), mode=("x",)))]


def test_a_rule_in_a_file_of_ones_own(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('name = "m"\nsummary = "s"\nwhere = { category = ["Index"], status = [] }\n')
    assert {"triton2triton/row_argmax"} <= {task.id for task in load_suite(path).tasks}


def test_generated_tasks_can_be_listed_in_a_suite(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('name = "m"\nsummary = "s"\ntasks = ["generated:seed=4,depth=3"]\n')
    (task,) = load_suite(path).tasks
    assert task.id == "triton2triton/generated:seed=4,depth=3"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("where = { colour = 1 }", ["'where.colour'", "unknown key", "category, level, mode"]),
        ('where = { level = "1" }', ["'where.level'", "found '1'"]),
        ('where = {}\ntasks = ["hip2hip/rope"]', ["'where'", "beside 'tasks'"]),
        ("where = { level = [9] }", ["no admitted task fits", "level"]),
    ],
)
def test_a_malformed_rule_says_where_and_what(tmp_path, text, parts):
    path = tmp_path / "bad.toml"
    path.write_text(f'name = "m"\nsummary = "s"\n{text}\n')
    with pytest.raises(SuiteError) as caught:
        load_suite(path)
    for part in [str(path), *parts]:
        assert part in str(caught.value)
