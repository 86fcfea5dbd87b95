"""The study of scale: real executors with sleeping devices, and its report."""

import json

import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app
from benchmarks.sleeping import (
    DEVICES_PER_ACTOR,
    Load,
    SleepingLocalExecutor,
    SleepingRayExecutor,
)
from kernel_gym.storage.run_store import RunStore
from tests.records import passing
from tests.storage.test_run_store import CONFIG, TASKS, record

TASK = "triton2triton/softmax"
LOAD = Load([0.001, 0.002, 0.004], [passing(speedup, 1.0) for speedup in (1.5, 2.0, 3.0, 4.0)])


def results(executor, count):
    """Returns the results of different submissions by source."""
    with executor:
        futures = {f"x = {i}": executor.submit(TASK, f"x = {i}") for i in range(count)}
        return {source: future.result() for source, future in futures.items()}


def test_a_sleeping_device_gives_the_record_that_is_drawn():
    drawn = results(SleepingLocalExecutor(LOAD, 3), 20)
    assert drawn == {source: LOAD.draw(source)[1] for source in drawn}
    assert len({evaluation.speedup for evaluation in drawn.values()}) > 1


@pytest.mark.ray
@pytest.mark.sweep
def test_an_actor_of_ray_stands_for_many_devices(cluster):
    executor = SleepingRayExecutor(LOAD, DEVICES_PER_ACTOR + 1)
    drawn = results(executor, 300)
    assert len(executor._actors) == 2
    assert drawn == {source: LOAD.draw(source)[1] for source in drawn}


@pytest.fixture
def run(tmp_path):
    """A run with two submissions that took 30 and 50 ms."""
    store = RunStore.start(tmp_path / "run", CONFIG)
    for turn, seconds in ((1, 0.03), (2, 0.05)):
        evaluation = passing(2.0, 1.5).model_copy(update={"wall_seconds": {"build": seconds}})
        store.append(record(TASKS[0], turn, evaluation), f"x = {turn}")
    return store.folder


def bench(*arguments):
    return CliRunner().invoke(app, ["scale", "--executor", "local", *arguments])


def test_the_study_takes_times_from_a_run_and_says_what_limits(run):
    result = bench("--run", str(run), "-n", "2", "--seconds", "1", "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["mean_seconds"] == pytest.approx(0.04)
    (point,) = report["points"]
    assert point["devices"] == 2
    assert 0 < point["rate"] <= 2 / 0.03
    assert 0 < point["busy"] < 1.2
    assert point["each"] > 0
    assert 0 < point["machine"] <= 1
    assert point["limit"]


def test_what_the_study_cannot_use_is_refused(tmp_path):
    result = bench("--run", str(tmp_path), "--seconds", "1")
    assert result.exit_code == 2
    assert "holds no run" in result.output
    result = CliRunner().invoke(app, ["scale", "--executor", "cloud"])
    assert result.exit_code == 2
    assert "known: local, ray" in " ".join(result.output.split())
