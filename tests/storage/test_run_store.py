"""The run folder."""

import math

import pytest

from kernel_gym.records import Element, Outcome, Stage
from kernel_gym.rewards import get_reward
from kernel_gym.storage.run_store import RunConfig, RunStore, StoreError, TurnRecord
from kernel_gym.storage.secret import PUBLIC, RunSecret, read_secret
from tests.records import failure, passing, workload

TASKS = ("triton2triton/softmax", "hip2hip/rope")
CONFIG = RunConfig(
    policy="baseline",
    suite="quickstart",
    tasks=TASKS,
    device="sim:gfx942",
    reward="kernel-opt",
    turns=2,
    seed=0,
)


def record(task: str, turn: int, evaluation=None) -> TurnRecord:
    evaluation = (evaluation or passing(1.5, 1.2)).model_copy(update={"task": task})
    result = get_reward()(evaluation)
    return TurnRecord(
        task=task,
        turn=turn,
        source=f"sources/{task}/turn_{turn}.py",
        reward=result.value,
        terms=result.terms,
        evaluation=evaluation,
    )


def end_all(store):
    """Ends every episode that has fewer turns than allowed."""
    for task, sample in store.unfinished():
        store.end(task, sample)


@pytest.fixture
def store(tmp_path):
    return RunStore.start(tmp_path / "run", CONFIG)


def test_lines_end_up_in_order_whatever_order_they_came_in(store):
    for task, turn in [(TASKS[1], 1), (TASKS[0], 1), (TASKS[1], 2), (TASKS[0], 2)]:
        store.append(record(task, turn), "source")
    store.finish()
    keys = [(r.task, r.turn) for r in RunStore(store.folder).records()]
    assert keys == [(TASKS[0], 1), (TASKS[0], 2), (TASKS[1], 1), (TASKS[1], 2)]


def test_a_record_reads_back_as_it_was_written(store):
    element = Element(output="o", index=(0,), expected=math.inf, found=math.nan, tolerance=1.0)
    failed = workload(passed=False, element=element)
    written = record(TASKS[0], 1, failure(Outcome.WRONG_VALUES, Stage.TRAIN, workloads=[failed]))
    store.append(written, "def f(): ∑\r\n")
    (read,) = RunStore(store.folder).records()
    assert read.model_dump_json() == written.model_dump_json()
    assert math.isnan(read.evaluation.workloads[0].element.found)
    assert (store.folder / read.source).read_bytes().decode() == "def f(): ∑\r\n"


def test_a_source_that_is_no_utf8_is_kept_readable(store):
    store.append(record(TASKS[0], 1), "\ud800")
    assert store.source(store.records()[0]) == "\\ud800"


def test_a_source_is_read_to_the_byte_and_from_the_run_alone(store, tmp_path):
    written = record(TASKS[0], 1)
    store.append(written, "def f():\r\n")
    assert store.source(written) == "def f():\r\n"
    (tmp_path / "key").write_text("secret")
    for path in ("../key", "sources/none.py", str(tmp_path / "key")):
        with pytest.raises(StoreError, match=r"No such file|leads out"):
            store.source(written.model_copy(update={"source": path}))


def test_another_run_is_refused(store):
    with pytest.raises(StoreError, match="give --resume or --overwrite"):
        RunStore.start(store.folder, CONFIG)


def test_resume_keeps_what_is_there(store):
    store.append(record(TASKS[0], 1), "source")
    resumed = RunStore.start(store.folder, CONFIG, resume=True)
    assert [r.turn for r in resumed.turns(TASKS[0])] == [1]
    assert resumed.turns(TASKS[1]) == []


def test_resume_plays_what_the_machine_failed_on_again_and_what_came_after(store):
    failed = failure(Outcome.INFRA, Stage.BUILD)
    for task, turn, found in ((0, 1, failed), (0, 2, None), (1, 1, None), (1, 2, failed)):
        store.append(record(TASKS[task], turn, found), "source")
    RunStore.start(store.folder, CONFIG, resume=True)
    left = [(r.task, r.turn) for r in RunStore(store.folder).records()]
    assert left == [(TASKS[1], 1)]


def test_an_episode_that_ended_early_is_over_when_the_run_is_resumed(store):
    store.append(record(TASKS[0], 1), "source")
    assert store.unfinished() == [(TASKS[0], 1), (TASKS[1], 1)]
    store.end(TASKS[0], reason="the prompt does not fit")
    resumed = RunStore.start(store.folder, CONFIG, resume=True)
    assert resumed.unfinished() == [(TASKS[1], 1)]
    (end,) = resumed.ends()
    assert (end.task, end.turns, end.reason) == (TASKS[0], 1, "the prompt does not fit")


def test_the_end_of_an_episode_falls_with_the_turn_that_the_machine_failed_on(store):
    store.append(record(TASKS[0], 1, failure(Outcome.INFRA, Stage.BUILD)), "source")
    store.end(TASKS[0])
    resumed = RunStore.start(store.folder, CONFIG, resume=True)
    assert resumed.ends() == []
    assert (TASKS[0], 1) in resumed.unfinished()


def test_resume_starts_a_run_where_there_is_none(tmp_path):
    assert RunStore.start(tmp_path / "new", CONFIG, resume=True).records() == []


def test_resume_refuses_another_configuration(store):
    other = CONFIG.model_copy(update={"seed": 1})
    with pytest.raises(StoreError, match="its seed is 0, not 1"):
        RunStore.start(store.folder, other, resume=True)


def test_a_cut_off_last_line_is_played_again(store):
    store.append(record(TASKS[0], 1), "source")
    store.append(record(TASKS[0], 2), "source")
    results = store.folder / "results.jsonl"
    results.write_text(results.read_text()[:-40])
    resumed = RunStore.start(store.folder, CONFIG, resume=True)
    assert [r.turn for r in resumed.records()] == [1]
    resumed.append(record(TASKS[0], 2), "source")
    assert [r.turn for r in RunStore(store.folder).records()] == [1, 2]


def test_a_broken_line_in_the_middle_is_named(store):
    results = store.folder / "results.jsonl"
    results.write_text("{}\n")
    with pytest.raises(StoreError, match=r"results.jsonl, line 1: task: found"):
        RunStore(store.folder)


def test_a_line_that_is_no_json_is_shown_as_text(store):
    (store.folder / "results.jsonl").write_text('{"task": \n')
    with pytest.raises(StoreError, match=r"line 1: line: found .*task") as raised:
        RunStore(store.folder)
    assert "b'" not in str(raised.value)


def test_overwrite_removes_the_run_and_nothing_else(store):
    store.append(record(TASKS[0], 1), "source")
    (store.folder / "notes.txt").write_text("mine")
    fresh = RunStore.start(store.folder, CONFIG, overwrite=True)
    assert fresh.records() == []
    assert not (store.folder / "sources").exists()
    assert (store.folder / "notes.txt").read_text() == "mine"


def test_a_folder_without_a_run_says_so(tmp_path):
    with pytest.raises(StoreError, match=r"holds no run: config.json is missing"):
        RunStore(tmp_path)


def test_a_malformed_config_names_file_key_found_and_expected(store):
    path = store.folder / "config.json"
    path.write_text(path.read_text().replace('"turns": 2', '"turns": "many"'))
    with pytest.raises(StoreError, match=r'config.json: turns: found "many", expected: '):
        RunStore(store.folder)


def test_a_run_with_draws_from_the_seed_alone_is_continued(tmp_path):
    RunStore.start(tmp_path / "run", CONFIG, secret=PUBLIC)
    for given in (None, PUBLIC):
        again = RunStore.start(tmp_path / "run", CONFIG, resume=True, secret=given)
        assert again.secret is PUBLIC
    with pytest.raises(StoreError, match="its secret is another one"):
        RunStore.start(tmp_path / "run", CONFIG, resume=True, secret=RunSecret.fresh())
    assert read_secret(tmp_path / "run") is PUBLIC


def test_such_a_run_of_an_earlier_version_is_continued_by_its_records(store, tmp_path):
    (store.folder / "secret.json").unlink()
    store.append(record(TASKS[0], 1), "x")
    assert RunStore.start(store.folder, CONFIG, resume=True).secret is PUBLIC


def test_a_run_has_a_secret_of_its_own_and_is_not_continued_without_it(store, tmp_path):
    other = RunStore.start(tmp_path / "other", CONFIG)
    assert other.secret.sha256 != store.secret.sha256
    assert RunStore.start(store.folder, CONFIG, resume=True).secret.sha256 == store.secret.sha256
    with pytest.raises(StoreError, match="its secret is another one"):
        RunStore.start(store.folder, CONFIG, resume=True, secret=other.secret)
    same = RunStore.start(tmp_path / "same", CONFIG, secret=store.secret)
    assert same.secret.sha256 == store.secret.sha256
    (store.folder / "secret.json").unlink()
    with pytest.raises(StoreError, match=r"secret\.json: no secret can be read"):
        RunStore.start(store.folder, CONFIG, resume=True)
    assert RunStore(store.folder).records() == []
    before = other.secret.sha256
    fresh = RunStore.start(other.folder, CONFIG, overwrite=True)
    assert fresh.secret.sha256 != before
