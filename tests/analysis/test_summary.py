"""Tests the summary of a run."""

import io

import pytest
from rich.console import Console

from kernel_gym.analysis.summary import summarise, summarise_records
from kernel_gym.commands.common import limits_text, summary_table
from kernel_gym.records import Clock, Outcome, Stage
from kernel_gym.storage.run_store import RunStore
from tests.records import failure, passing, workload
from tests.storage.test_run_store import CONFIG, TASKS, record


def test_the_best_submission_counts(tmp_path):
    store = RunStore.start(tmp_path, CONFIG)
    store.append(record(TASKS[0], 1, passing(4.0, 4.0)), "a")
    store.append(record(TASKS[0], 2, passing(2.0, 2.0)), "b")
    store.append(record(TASKS[1], 1, failure(Outcome.WRONG_VALUES, Stage.TRAIN)), "c")
    summary = summarise(store)
    assert (summary.submissions, summary.solved) == (3, 1)
    assert summary.speedup == pytest.approx(4.0)
    assert summary.clock is Clock.MODELLED
    first, second = summary.tasks
    assert (first.best_turn, first.outcomes) == (1, ("passed", "passed"))
    assert (second.best_turn, second.speedup, second.reward) == (None, None, 0.05)


def test_a_task_that_only_a_copy_of_the_start_kernel_solves_is_counted_apart(tmp_path):
    store = RunStore.start(tmp_path, CONFIG)
    copy = passing(1.0, 1.0).model_copy(update={"copied": True})
    store.append(record(TASKS[0], 1, copy), "a")
    store.append(record(TASKS[1], 1, passing(2.0, 2.0)), "b")
    summary = summarise(store)
    assert (summary.solved, summary.copies) == (2, 1)
    assert "2 of 2 tasks solved, 1 of them by the start kernel" in shown(store)[0]


def test_an_empty_run_has_a_summary(tmp_path):
    summary = summarise(RunStore.start(tmp_path, CONFIG))
    assert (summary.solved, summary.speedup, summary.mean_reward) == (0, None, None)


def test_masked_turns_earn_nothing(tmp_path):
    store = RunStore.start(tmp_path, CONFIG)
    store.append(record(TASKS[0], 1, failure(Outcome.INFRA, Stage.BUILD)), "a")
    assert summarise(store).tasks[0].reward is None


def shown(store):
    """The table as lines of words."""
    console = Console(width=120, file=io.StringIO())
    console.print(summary_table(summarise(store)))
    lines = console.file.getvalue().splitlines()
    return [" ".join(line.split()) for line in lines if line.strip()]


def sampled(folder, samples, turns=2):
    config = CONFIG.model_copy(update={"samples": samples, "turns": turns, "tasks": TASKS[:1]})
    store = RunStore.start(folder, config)
    for sample in range(1, samples + 1):
        for turn in range(1, turns + 1):
            update = {"sample": sample, "source": f"sources/{sample}/{turn}.py"}
            store.append(record(TASKS[0], turn).model_copy(update=update), "x")
    return store


def test_samples_and_turns_are_columns_of_their_own(tmp_path):
    *_, first, second, third = shown(sampled(tmp_path / "run", 3))
    turns = " ".join(first.split()[2:6])
    assert first.startswith(f"{TASKS[0]} 1 passed")
    assert second == f"2 {turns}"
    assert third == f"3 {turns}"
    assert "sample" not in " ".join(shown(sampled(tmp_path / "one", 1)))


def test_many_samples_are_counted(tmp_path):
    last = shown(sampled(tmp_path / "run", 40))[-1]
    assert "all 40 passed 80" in last


def test_speedups_with_ratios_that_count_as_limits_are_counted(tmp_path):
    names = ("triton2triton/softmax", "torch2triton/softmax")
    store = RunStore.start(tmp_path, CONFIG.model_copy(update={"tasks": names}))
    fast = passing(10.0, 10.0).model_copy(update={"workloads": (workload(speedup=40.0),)})
    store.append(record(names[0], 1, fast), "a")
    store.append(record(names[1], 1, passing(2.0, 2.0)), "b")
    summary = summarise(store)
    assert [task.clamped for task in summary.tasks] == [1, 0]
    limits = "1 of 2 speedups have ratios of times beyond 0.1x to 10x, which count as these limits"
    assert limits_text(summary) == limits
    without = store.records()[1:]
    assert limits_text(summarise_records(names, without, 0)) == ""


def test_each_row_of_the_demo_fits_a_terminal_of_80_characters(tmp_path):
    names = [f"{mode}/bias_residual_gelu" for mode in ("triton2triton", "torch2triton")]
    store = RunStore.start(tmp_path, CONFIG.model_copy(update={"tasks": tuple(names)}))
    for name in names:
        failed = failure(Outcome.COMPILE_ERROR, Stage.BUILD)
        store.append(record(name, 1, failed), "a")
        store.append(record(name, 2, passing(12.34, 12.34)), "b")
    console = Console(width=80, file=io.StringIO())
    console.print(summary_table(summarise(store)))
    lines = console.file.getvalue().splitlines()
    assert [line for line in lines if "…" in line] == []
    assert sum(name in line for name in names for line in lines) == len(names)
    assert sum("12.3x" in line and ".py" in line for line in lines) == len(names)
