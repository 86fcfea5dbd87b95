"""Generated tasks: refused seeds are left out, splits are kept apart."""

import itertools

import pytest

from kernel_gym.admission import check_values, generated_tasks
from kernel_gym.tasks import Scale, UnknownName, get_problem, get_task
from kernel_gym.tasks.generated.problem import generated_id


def test_what_is_refused_is_left_out_and_nothing_else(monkeypatch):
    monkeypatch.setattr("kernel_gym.admission.generated.seeds", lambda split: range(363, 369))
    names = set(generated_tasks("train", 3))
    left_out = {generated_id(seed, 3) for seed in range(363, 369)} - names
    assert left_out
    assert all(check_values(get_problem(name), Scale.SIM, 0).refused for name in left_out)
    assert not any(check_values(get_problem(name), Scale.SIM, 0).refused for name in names)


def test_get_task_refuses_what_admission_refuses():
    name = generated_id(366, 3)  # the mean of a product, then a sigmoid: nearly constant
    reasons = check_values(get_problem(name), Scale.SIM, 0).refused
    assert reasons == ("low-precision accumulation: passes: sums",)
    for task_id in (name, f"torch2triton/{name}"):
        with pytest.raises(UnknownName, match="admission refuses it: low-precision accumulation"):
            get_task(task_id)


def test_splits_share_no_task():
    train, test = (set(itertools.islice(generated_tasks(s, 3), 8)) for s in ("train", "test"))
    assert len(train | test) == 16


def test_a_split_or_depth_that_is_none_is_named():
    with pytest.raises(ValueError, match="found 'dev'"):
        next(generated_tasks("dev", 3))
    with pytest.raises(UnknownName, match="found 9"):
        next(generated_tasks("train", 9))


def test_tasks_end_with_the_last_graph(monkeypatch):
    monkeypatch.setattr("kernel_gym.admission.generated.count", lambda depth: 3)
    names = list(generated_tasks("train", 3))
    assert names
    assert set(names) <= {generated_id(seed, 3) for seed in range(3)}
