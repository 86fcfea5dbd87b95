"""Recorded runs again: scored otherwise, and evaluated again."""

import json
import re

import pytest
from typer.testing import CliRunner

from kernel_gym.analysis.replay import TIMING_MODEL, Replayed, rescore
from kernel_gym.cli import app
from kernel_gym.records import Outcome, Stage
from kernel_gym.rewards import Recipe, get_reward
from kernel_gym.rewards.recipe import Part
from kernel_gym.storage.run_store import RunStore
from kernel_gym.storage.secret import RunSecret
from tests.records import failure, passing
from tests.storage.test_run_store import CONFIG, record

TASK = CONFIG.tasks[0]


@pytest.fixture
def store(tmp_path):
    store = RunStore.start(tmp_path / "run", CONFIG)
    other = failure(Outcome.INFRA, Stage.BUILD)
    turns = [(TASK, 1, passing(1.5, 1.5)), (TASK, 2, passing(3.0, 3.0))]
    for task, turn, evaluation in [*turns, (CONFIG.tasks[1], 1, other)]:
        store.append(record(task, turn, evaluation), "x" * 10)
    return store


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, (result.output, result.exception)
    return result


def test_rescoring_under_the_same_reward_changes_nothing(store):
    assert rescore(store, get_reward()) == store.records()


def test_rescoring_knows_the_turns_before_and_the_length(store):
    reward = Recipe("mine", terms=(Part("improvement"), Part("length", settings={"free": 0})))
    first, second, masked = rescore(store, reward)
    assert first.terms["improvement"] == pytest.approx(get_speed(1.5))
    assert second.terms["improvement"] == pytest.approx(get_speed(3.0) - get_speed(1.5))
    assert first.terms["length"] > 0
    assert masked.reward is None


def get_speed(speedup):
    from kernel_gym.rewards.terms import log_speed

    return log_speed(speedup)


def test_rescore_prints_and_writes_a_run_of_its_own(store, tmp_path):
    out = tmp_path / "kevin"
    arguments = ("rescore", store.folder, "--reward", "kevin", "--out", out)
    data = json.loads(run(*arguments, "--json").stdout)
    assert [turn["reward"] for turn in data["turns"]] == pytest.approx([1.8, 3.3, None])
    copy = RunStore(out)
    assert copy.config.reward == "kevin"
    assert [r.reward for r in copy.records()] == [turn["reward"] for turn in data["turns"]]
    assert copy.source(copy.records()[0]) == "x" * 10
    assert "another run" in run(*arguments, code=2).stderr
    assert "tasks solved" in run(*arguments, "--overwrite").stdout
    assert "did you mean" in run("rescore", store.folder, "--reward", "kevn", code=2).stderr


def test_replay_finds_what_differs(tmp_path):
    kernels = tmp_path / "kernels" / TASK
    kernels.mkdir(parents=True)
    (kernels / "1.py").write_text("broken(")
    (kernels / "2.py").write_text("def softmax(x): return x\n")
    suite = tmp_path / "one.toml"
    suite.write_text(f'name = "one"\nsummary = "One."\ntasks = ["{TASK}"]\n')
    out = tmp_path / "run"
    run(
        "eval", "--policy", f"folder:{tmp_path / 'kernels'}", "--suite", suite, "--out", out,
        "--device", "sim:gfx942", "--executor", "inline",
    )  # fmt: skip
    assert "2 of 2 came out the same" in run("replay", out, "--executor", "inline").stdout
    assert "2 of 2 came out the same" in run("replay", out, "--plans").stdout
    results = out / "results.jsonl"
    named = results.read_text()
    results.write_text(re.sub(r'"problem_sha256":"\w+",', "", named))
    assert results.read_text() != named
    assert "2 of 2 came out the same" in run("replay", out, "--plans").stdout  # older records
    results.write_text(re.sub(r'"problem_sha256":"\w', '"problem_sha256":"x', named))
    edited = json.loads(run("replay", out, "--plans", "--json", code=1).stdout)
    assert [d["differences"] for d in edited["differ"]] == [["problem_sha256"]] * 2
    results.write_text(named)
    one_task = ("--task", TASK, "--executor", "inline")
    assert "2 of 2 came out the same; 0 left out" in run("replay", out, *one_task).stdout
    other = run("replay", out, "--task", "hip2hip/rope", code=2).stderr
    assert "has no task hip2hip/rope" in other
    source = out / RunStore(out).records()[1].source
    source.write_text("import ctypes\n")
    data = json.loads(run("replay", out, "--executor", "inline", "--json", code=1).stdout)
    assert data["replayed"] == 2
    (differs,) = data["differ"]
    assert differs["turn"] == 2
    assert {"source_sha256", "outcome", "stage"} <= set(differs["differences"])


def test_a_replay_names_the_versions_of_the_timing_model(store):
    recorded = store.records()[0]
    now = passing(1.5, 1.5).model_copy(update={"versions": {TIMING_MODEL: "2"}})
    assert Replayed(recorded, now, ("versions",)).clocks == ("before 1", "2")
    same = recorded.model_copy(update={"evaluation": now})
    assert Replayed(same, now, ()).clocks is None


def test_versions_with_the_same_times_are_comparable(store):
    (recorded, *_) = store.records()
    evaluations = {
        version: recorded.evaluation.model_copy(
            update={"device": "sim:gfx942", "versions": {"timing_model": version}}
        )
        for version in ("8", "10", "11")
    }
    old, equal = (
        Replayed(recorded.model_copy(update={"evaluation": evaluations[v]}), evaluations["11"], ())
        for v in ("8", "10")
    )
    assert old.clocks == ("8", "11")
    assert equal.clocks is None


def test_a_replay_needs_the_secret_of_the_run(tmp_path):
    kernels = tmp_path / "kernels" / TASK
    kernels.mkdir(parents=True)
    (kernels / "1.py").write_text("def softmax(x): return x\n")
    suite = tmp_path / "one.toml"
    suite.write_text(f'name = "one"\nsummary = "One."\ntasks = ["{TASK}"]\n')
    out, policy = tmp_path / "run", f"folder:{tmp_path / 'kernels'}"
    common = ("--suite", suite, "--device", "sim:gfx942", "--executor", "inline", "--seed", 0)
    run("eval", "--policy", policy, "--out", out, *common)
    store = RunStore(out)
    (stored,) = store.records()
    assert stored.evaluation.secret_sha256 == store.secret.sha256
    assert "1 of 1 came out the same" in run("replay", out, "--executor", "inline").stdout
    kept = (out / "secret.json").rename(tmp_path / "kept.json")
    assert "no secret can be read" in run("replay", out, "--executor", "inline", code=2).stderr
    RunSecret.fresh().write(out / "secret.json")
    assert "is not what the records" in run("replay", out, "--executor", "inline", code=2).stderr
    kept.replace(out / "secret.json")
    run("rescore", out, "--reward", "kevin", "--out", tmp_path / "copy")
    assert "1 of 1" in run("replay", tmp_path / "copy", "--executor", "inline").stdout
