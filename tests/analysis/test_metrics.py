"""The metrics of runs whose figures are known by hand."""

import io
import json

import pytest
from rich.console import Console
from scipy import stats
from typer.testing import CliRunner

from kernel_gym.analysis.breakdown import run_metrics
from kernel_gym.analysis.compare import compare
from kernel_gym.analysis.metrics import attempts, fast_p_compiled
from kernel_gym.cli import app
from kernel_gym.commands.metrics_table import _estimates, metrics_table
from kernel_gym.imports import imported
from kernel_gym.imports.manifest import (
    CompiledBaseline,
    DeviceVerdict,
    ImportStatus,
    Manifest,
    ManifestEntry,
    write_manifest,
)
from kernel_gym.records import MISCOMPILED, Outcome, Stage
from kernel_gym.storage.run_store import RunStore, StoreError
from kernel_gym.tasks.names import IMPORTS, Mode
from kernel_gym.tasks.workload import Split
from tests.records import evaluation as made_evaluation
from tests.records import failure, passing, workload
from tests.storage.test_run_store import CONFIG, end_all, record

A, B, C = "triton2triton/softmax", "torch2triton/softmax", "hip2hip/transpose"
CRASH = failure(Outcome.RUNTIME_ERROR, Stage.TRAIN)
WRONG = failure(Outcome.WRONG_VALUES, Stage.TRAIN)
HACK = failure(Outcome.HACK, Stage.ADVERSARIAL)
INFRA = failure(Outcome.INFRA, Stage.BUILD)
NARROW = failure(
    Outcome.UNSEEN_FAILED,
    Stage.UNSEEN,
    workloads=[workload(), workload(Split.UNSEEN), workload(Split.UNSEEN, passed=False)],
)
PLAYED = {
    (A, 1): [passing(2.0, 1.0), WRONG],
    (A, 2): [CRASH, passing(0.5, 0.8)],
    (B, 1): [NARROW, passing(4.0, 4.0), passing(8.0, 0.5)],
    (B, 2): [HACK],
    (C, 1): [INFRA],
    (C, 2): [],
}


def make(folder, played=PLAYED, **fields):
    """A run with these evaluations."""
    tasks = tuple(dict.fromkeys(task for task, _ in played))
    samples = max(sample for _, sample in played)
    config = CONFIG.model_copy(update={"tasks": tasks, "samples": samples, "turns": 3, **fields})
    store = RunStore.start(folder, config)
    for (task, sample), evaluations in played.items():
        for turn, evaluation in enumerate(evaluations, start=1):
            one = record(task, turn, evaluation)
            update = {
                "reward": one.evaluation.speedup or 0.0,
                "sample": sample,
                "source": store.source_path(task, turn, "triton", sample),
                "completion_tokens": 10,
                "cost": 0.25,
            }
            store.append(one.model_copy(update=update), "x")
    end_all(store)
    return store


@pytest.fixture
def metrics(tmp_path):
    return run_metrics(make(tmp_path))


SPEEDUPS = [2.0, 0.5, 8.0, 0.0, 0.0]
"""The speedups of the attempts that count; the one on which the machine failed does not."""


def value(metrics, name):
    return metrics["headline"][name]["value"]


def test_the_headline(metrics):
    assert (metrics["attempts"], metrics["masked_attempts"]) == (5, 1)
    assert value(metrics, "call_accuracy") == pytest.approx(3 / 5)
    assert value(metrics, "execution_accuracy") == pytest.approx(3 / 5)
    assert value(metrics, "fast_1") == pytest.approx(2 / 5)
    floor = [s or 0.1 for s in SPEEDUPS]
    assert value(metrics, "geometric_speedup_of_all") == pytest.approx(stats.gmean(floor))
    assert value(metrics, "geometric_speedup_of_correct") == pytest.approx(2.0)
    assert value(metrics, "arithmetic_speedup_of_all") == pytest.approx(sum(SPEEDUPS) / 5)
    assert value(metrics, "arithmetic_speedup_of_correct") == pytest.approx(3.5)
    # workloads take 20 us over the speedup and could take 4 us
    light = [0.4, 0.1, 1.0, 0.0, 0.0]
    assert value(metrics, "speed_of_light") == pytest.approx(sum(light) / 5)
    # 20 compiled + 100 correct + 100 x speedup; a hack is not paid for compiling
    assert value(metrics, "agent_kernel_arena") == pytest.approx((320 + 170 + 920 + 0 + 0) / 5)


def test_an_interval_holds_its_value(metrics):
    for estimate in metrics["headline"].values():
        assert estimate["low"] <= estimate["value"] <= estimate["high"]


def test_the_fast_p_curve_is_a_survival_function(metrics):
    curve = {row["p"]: row["share"]["value"] for row in metrics["fast_p"]}
    other = stats.ecdf(SPEEDUPS).sf.evaluate(list(curve))
    assert list(curve.values()) == pytest.approx(list(other))
    assert (curve[0.0], curve[0.5], curve[5.0]) == pytest.approx((0.6, 0.4, 0.2))


def test_pass_and_best_at_k(metrics):
    one, two = metrics["at_k"]
    assert (one["k"], one["tasks"], two["k"], two["tasks"]) == (1, 3, 2, 2)
    assert one["pass"]["value"] == pytest.approx((1 + 0.5 + 0) / 3)
    assert one["best_speedup"]["value"] == pytest.approx((1.25 + 4 + 0) / 3)
    assert two["pass"]["value"] == 1.0
    assert two["best_speedup"]["value"] == pytest.approx((2 + 8) / 2)


def test_the_trajectory(metrics):
    first, second, third = metrics["trajectory"]
    assert (first["submissions"], second["submissions"], third["submissions"]) == (4, 3, 1)
    assert (first["call_accuracy"], first["execution_accuracy"]) == (0.5, 0.25)
    assert [t["solved"] for t in metrics["trajectory"]] == pytest.approx([0.2, 0.6, 0.6])
    assert (second["fixed"], second["broken"]) == (2, 1)
    assert second["best_speedup"] == pytest.approx(stats.gmean([2, 0.5, 4]))
    assert third["best_speedup"] == pytest.approx(stats.gmean([2, 0.5, 8]))
    assert metrics["origin"] == {
        "persistent": {"attempts": 1, "speedup": 2.0},
        "rescued": {"attempts": 2, "speedup": 2.0},
        "never": {"attempts": 2, "speedup": None},
    }


def test_unseen_shapes(metrics):
    unseen = metrics["unseen"]
    assert unseen["conditional_correctness"]["value"] == pytest.approx(4 / 5)
    kept = stats.gmean([0.5, 1.6, 0.0625])
    assert unseen["retention"]["value"] == pytest.approx(kept)
    assert unseen["quadrants"] == {
        "faster_on_both": 0,
        "faster_on_seen_only": 2,
        "faster_on_unseen_only": 0,
        "faster_on_neither": 1,
    }
    kind = unseen["kinds"]["scale_up"]
    assert kind["workloads"] == 6
    assert kind["correctness"] == pytest.approx(5 / 6)
    assert kind["retention"] == pytest.approx(kept)
    assert unseen["kinds"]["edge"] == {"workloads": 0, "correctness": None, "retention": None}


def test_faults_of_compilers_are_counted(tmp_path):
    store = RunStore.start(tmp_path, CONFIG)
    fault = made_evaluation(Outcome.INFRA, Stage.TRAIN, labels=(MISCOMPILED,))
    store.append(record(CONFIG.tasks[0], 1, fault), "x = 1\n")
    assert run_metrics(store)["outcomes"]["compiler_faults"] == {MISCOMPILED: 1}


def test_outcomes_groups_and_usage(metrics):
    outcomes = metrics["outcomes"]
    assert outcomes["counts"]["passed"] == 4
    assert sum(outcomes["counts"].values()) == outcomes["submissions"] == 9
    assert outcomes["hack_share"] == pytest.approx(1 / 9)
    assert outcomes["hacks"] == {"it went wrong": 1}
    assert outcomes["compiler_faults"] == {}
    modes = metrics["groups"]["mode"]["levels"]
    assert {m: row["execution_accuracy"]["value"] for m, row in modes.items()} == {
        "hip2hip": 0.0,
        "torch2triton": 0.5,
        "triton2triton": 1.0,
    }
    assert metrics["groups"]["mode"]["deviance"]["degrees"] == 2
    assert metrics["usage"]["completion_tokens"] == 90
    assert metrics["usage"]["cost"] == pytest.approx(2.25)
    assert metrics["usage"]["evaluation_seconds"] == pytest.approx(2.0)


def test_they_are_plain_data_even_of_an_empty_run(tmp_path, metrics):
    json.dumps(metrics, allow_nan=False)
    empty = run_metrics(RunStore.start(tmp_path / "empty", CONFIG))
    json.dumps(empty, allow_nan=False)
    assert value(empty, "execution_accuracy") is None
    assert value(empty, "geometric_speedup_of_correct") is None


def test_the_best_paid_submission_stands_for_its_attempt(tmp_path):
    speedups = {(a.task, a.sample): a.speedup for a in attempts(make(tmp_path))}
    assert list(speedups.values()) == SPEEDUPS
    assert (C, 1) not in speedups


TASKS = ("add_rms_norm", "cross_entropy", "gelu", "layer_norm", "softmax", "swiglu")


def speeds(folder, *values, **fields):
    """A run with one submission a task."""
    played = {
        (f"triton2triton/{t}", 1): [passing(s, s)] for t, s in zip(TASKS, values, strict=True)
    }
    return make(folder, played, **fields)


def test_a_paired_comparison_takes_out_how_hard_tasks_are(tmp_path):
    before = speeds(tmp_path / "a", 0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
    after = speeds(tmp_path / "b", 0.21, 0.55, 1.1, 2.1, 4.4, 8.4)
    speedup = compare(before, after).changes["geometric_speedup_of_all"]
    factors = [1.05, 1.1, 1.1, 1.05, 1.1, 1.05]
    assert speedup.factor
    assert speedup.change.value == pytest.approx(stats.gmean(factors))
    assert speedup.after / speedup.before == pytest.approx(speedup.change.value)
    assert 1.05 <= speedup.change.low <= speedup.change.value <= speedup.change.high <= 1.1
    same = compare(before, before).changes["arithmetic_speedup_of_all"].change
    assert (same.value, same.low, same.high) == (0, 0, 0)


def test_the_paired_interval_is_that_of_scipy(tmp_path):
    x, y = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0), (0.4, 0.4, 1.5, 1.8, 5.0, 9.5)
    comparison = compare(speeds(tmp_path / "a", *x), speeds(tmp_path / "b", *y))
    change = comparison.changes["arithmetic_speedup_of_all"].change
    differences = [b - a for a, b in zip(x, y, strict=True)]
    other = stats.bootstrap(
        (differences,), lambda d, axis: d.mean(axis=axis), method="percentile", rng=1
    ).confidence_interval
    assert change.value == pytest.approx(sum(differences) / 6)
    width = other.high - other.low
    assert change.low == pytest.approx(other.low, abs=0.1 * width)
    assert change.high == pytest.approx(other.high, abs=0.1 * width)


def test_what_cannot_be_compared_is_left_out_or_refused(tmp_path):
    first = make(tmp_path / "a")
    other = make(tmp_path / "b", {(A, 1): [WRONG]}, reward="kevin")
    comparison = compare(first, other)
    assert comparison.tasks == (A,)
    assert comparison.left_out == (C, B)
    assert "reward" not in comparison.changes
    assert comparison.changes["execution_accuracy"].change.value == -1.0
    assert comparison.changes["execution_accuracy"].change.low is None
    with pytest.raises(StoreError, match="no task in common"):
        compare(other, make(tmp_path / "c", {(B, 1): [WRONG]}))
    with pytest.raises(StoreError, match="times cannot be compared"):
        compare(first, make(tmp_path / "d", device="cuda:0"))


def cut(store, folder, attempts):
    """The run as it was when so many attempts were over, and the next one had begun."""
    part = RunStore.start(folder, store.config)
    for one in store.records()[: attempts + 1]:
        part.append(one, "x")
    for end in store.ends()[: max(attempts, 0)]:
        part.end(end.task, end.sample)
    return part


def test_attempts_that_a_stopped_run_did_not_end_are_no_failures(tmp_path):
    whole = speeds(tmp_path / "a", 0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
    part = cut(whole, tmp_path / "b", 2)
    assert len(part.records()) == 3
    comparison = compare(whole, part)
    assert (comparison.tasks, comparison.complete) == (whole.config.tasks[:2], False)
    assert (comparison.unfinished, comparison.asked) == ((0, 4), (6, 6))
    for name, change in comparison.changes.items():
        assert (name, change.after) == (name, change.before)
    metrics = run_metrics(part)
    counted = ("attempts", "unfinished_attempts", "unfinished_tasks", "masked_attempts")
    assert [metrics[name] for name in counted] == [2, 4, 4, 0]
    assert value(metrics, "execution_accuracy") == 1.0


def test_a_run_in_which_no_attempt_is_over_is_not_compared(tmp_path):
    whole = speeds(tmp_path / "a", 0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
    for number, other in enumerate((cut(whole, tmp_path / "b", 0), cut(whole, tmp_path / "c", -1))):
        assert len(other.records()) == 1 - number
        with pytest.raises(StoreError, match="no attempt that is over"):
            compare(whole, other)


def test_the_command_marks_a_comparison_with_an_unfinished_run(tmp_path):
    whole = speeds(tmp_path / "a", 0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
    cut(whole, tmp_path / "b", 2)
    runs = [str(tmp_path / name) for name in "ab"]
    result = CliRunner().invoke(app, ["compare", *runs])
    assert result.exit_code == 1
    assert "4 of 6 attempts are not over" in result.stderr
    assert "2 tasks, unfinished" in result.stdout
    result = CliRunner().invoke(app, ["compare", *runs, "--json"])
    assert result.exit_code == 1
    assert json.loads(result.stdout)["others"][0]["complete"] is False


def test_the_command_compares_each_run_with_the_first(tmp_path):
    before = speeds(tmp_path / "a", 0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
    speeds(tmp_path / "b", 0.21, 0.55, 1.1, 2.1, 4.4, 8.4)
    runs = [str(tmp_path / name) for name in "ab"]
    printed = CliRunner().invoke(app, ["compare", *runs, runs[0]]).stdout
    assert "1.07x" in printed
    assert printed.count("against") == 2
    output = json.loads(CliRunner().invoke(app, ["compare", *runs, "--json"]).stdout)
    (other,) = output["others"]
    assert other["complete"] is True
    change = other["changes"]["geometric_speedup_of_all"]["change"]
    assert 1.05 <= change["low"] < change["value"] < change["high"] <= 1.1
    assert len(other["tasks"]) == len(before.config.tasks)


def drawn(folder, secret, triton="3.9.0", drawn_seed=None, **fields):
    """A run with one submission, whose draws come from a secret."""
    update = {"secret_sha256": secret, "versions": {"triton": triton}, "seed": drawn_seed}
    return make(folder, {(A, 1): [passing(2.0, 1.0).model_copy(update=update)]}, **fields)


def test_a_comparison_names_what_else_differs(tmp_path):
    first = drawn(tmp_path / "a", "1" * 64)
    assert compare(first, drawn(tmp_path / "b", "1" * 64)).differences == ()
    other = drawn(tmp_path / "c", "2" * 64, "3.8.0", seed=5, reward="kevin")
    names = {one.name: (one.before, one.after) for one in compare(first, other).differences}
    seed = CONFIG.seed
    assert names == {
        "secret": ("1" * 12, "2" * 12),
        "seed": ("none" if seed is None else str(seed), "5"),
        "reward": (CONFIG.reward, "kevin"),
        "triton": ("3.9.0", "3.8.0"),
    }
    public = compare(first, drawn(tmp_path / "d", "")).differences
    assert [(one.name, one.after) for one in public] == [("secret", "none")]


def test_two_runs_without_a_seed_draw_differently(tmp_path):
    one, two = (drawn(tmp_path / str(n), "1" * 64, drawn_seed=n, seed=None) for n in (7, 8))
    assert [d.name for d in compare(one, two).differences] == ["seed"]
    assert compare(one, one).differences == ()


def test_the_command_says_that_secrets_differ(tmp_path):
    for name, secret in (("a", "1" * 64), ("b", "2" * 64)):
        drawn(tmp_path / name, secret)
    runs = [str(tmp_path / name) for name in "ab"]
    printed = CliRunner().invoke(app, ["compare", *runs]).stdout
    assert f"secret differs, {'1' * 12} and {'2' * 12}: data and unseen shapes" in printed
    assert "differs" not in CliRunner().invoke(app, ["compare", runs[0], runs[0]]).stdout
    (other,) = json.loads(CliRunner().invoke(app, ["compare", *runs, "--json"]).stdout)["others"]
    assert [one["name"] for one in other["differences"]] == ["secret"]


@pytest.mark.parametrize("folders", [["nowhere"], ["nowhere", "nowhere"]])
def test_the_command_refuses_bad_input_in_one_line(folders):
    result = CliRunner().invoke(app, ["compare", *folders])
    assert result.exit_code == 2
    assert len(result.stderr.strip().splitlines()) == 1


def test_fast_p_over_the_compiled_baseline_counts_the_tasks_that_have_one(tmp_path):
    played = attempts(make(tmp_path))
    curve = fast_p_compiled(played, {A: 1.6})
    assert curve["tasks"] == 1
    shares = {row["p"]: (row["share"].value, row["eager"].value) for row in curve["rows"]}
    assert shares[0.0] == (1.0, 1.0)
    assert shares[1.0] == (0.5, 0.5)  # 2 / 1.6 and 0.5 / 1.6
    assert shares[1.5] == (0.0, 0.5)


def test_a_run_without_compiled_baselines_shows_none(metrics):
    assert metrics["fast_p_compiled"]["tasks"] == 0
    text = " ".join(name for name, _ in _estimates(metrics))
    assert "torch.compile" not in text


def test_the_table_answers_in_few_lines_and_has_tokens_and_cost(metrics):
    console = Console(width=100, file=io.StringIO())
    console.print(metrics_table(metrics))
    text = console.file.getvalue()
    assert "tokens read, written" in text
    assert "USD" in text
    assert "fast_5" not in text
    assert len(text.splitlines()) <= 30


def test_the_compiled_speedup_is_that_of_the_device(tmp_path, monkeypatch):
    monkeypatch.setenv(IMPORTS, str(tmp_path))
    times = CompiledBaseline(eager_seconds=(4.0,), compiled_seconds=(2.0,))
    failed = CompiledBaseline(reason="torch.compile: no")
    verdicts = {
        device: DeviceVerdict(status=ImportStatus.ADMITTED, compiled=compiled)
        for device, compiled in (("cuda:0", times), ("cuda:1", failed), ("sim:gfx942", None))
    }
    entry = ManifestEntry(name="one", category="x", mode=Mode.TORCH2TRITON, verdicts=verdicts)
    manifest = Manifest(suite="tiny", checkout="", commit="", licence="", tasks={"one": entry})
    write_manifest(manifest)
    speedups = {
        device: imported.compiled_speedup("tiny/one", device)
        for device in ("cuda:0", "cuda:1", "sim:gfx942", "rocm:0")
    }
    assert speedups == {"cuda:0": 2.0, "cuda:1": None, "sim:gfx942": None, "rocm:0": None}
    assert imported.compiled_speedup("triton2triton/softmax", "cuda:0") is None
