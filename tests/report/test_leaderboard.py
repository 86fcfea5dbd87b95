"""The leaderboard: what is ranked, what is refused, and what a reader can check."""

import json
import shutil

import pytest
import typer

from kernel_gym.analysis.record_checks import checked_run
from kernel_gym.commands.leaderboard import leaderboard
from kernel_gym.episodes.episode import Episode
from kernel_gym.errors import InputError
from kernel_gym.judge.protocol import PROTOCOL_VERSION
from kernel_gym.policies import Reply
from kernel_gym.policies.recording import record_turn
from kernel_gym.records import Outcome, Stage, source_digest
from kernel_gym.report.leaderboard_pages import build_leaderboard
from kernel_gym.rewards import get_reward
from kernel_gym.storage.json_lines import StoreError, write_lines
from kernel_gym.storage.run_store import RESULTS, RunStore
from kernel_gym.storage.secret import PUBLIC
from kernel_gym.tasks import get_task
from tests.records import failure, passing
from tests.storage.test_run_store import CONFIG

TASKS = (
    "triton2triton/softmax",
    "triton2triton/cumsum",
    "torch2triton/gelu",
    "hip2hip/rope",
    "hip2hip/transpose",
    "torch2hip/rope",
)
MARKUP = "<script>alert(1)</script>"


def played(folder, policy, speed, **facts):
    """A run with one submission a task; speed 0 gives wrong kernels."""
    config = CONFIG.model_copy(update={"policy": policy, "tasks": TASKS, "turns": 1})
    store = RunStore.start(folder, config, secret=PUBLIC)
    with store.session(f"kernel-gym eval --policy {policy}"):
        for number, task in enumerate(TASKS):
            source = f"# {policy} {MARKUP}\nx = {number}\n"
            judged = failure(Outcome.WRONG_VALUES, Stage.TRAIN, task=task)
            if speed:
                judged = passing(speed + number / 10, speed, task=task)
            known = {"protocol_version": PROTOCOL_VERSION, "source_sha256": source_digest(source)}
            evaluation = judged.model_copy(update=known | facts)
            record_turn(store, get_reward(), Episode(get_task(task)), Reply("", source), evaluation)
    store.finish()
    return folder


def changed(folder, **changes):
    """Changes the first record of a run, as a cheat would: in a dotted path of its JSON."""
    lines = (folder / RESULTS).read_text().splitlines()
    record = json.loads(lines[0])
    for path, value in changes.items():
        *parents, name = path.split("__")
        place = record
        for parent in parents:
            place = place[int(parent) if parent.isdigit() else parent]
        place[name] = value
    (folder / RESULTS).write_text("\n".join([json.dumps(record), *lines[1:]]) + "\n")
    return folder


def test_runs_are_ranked_with_a_test_between_neighbours(tmp_path):
    runs = [played(tmp_path / name, name, speed) for name, speed in (("slow", 1.0), ("fast", 3.0))]
    (board,) = build_leaderboard(runs, tmp_path / "site").boards
    assert [row.policy for row in board.rows] == ["fast", "slow"]
    below = board.rows[0].below
    assert below.difference.low > 0
    assert below.p_value == pytest.approx(2 / 2**6)  # all six differences have one sign
    assert below.apart
    assert board.rows[1].below is None
    assert board.rows[0].figures["unseen_speedup_of_correct"].value == pytest.approx(3.0)


def test_equal_runs_are_not_told_apart_and_have_one_digest(tmp_path):
    first = played(tmp_path / "a", "same", 2.0)
    second = played(tmp_path / "b", "same", 2.0)
    (board,) = build_leaderboard([first, second], tmp_path / "site").boards
    assert not board.rows[0].below.apart
    assert len({row.facts.digest for row in board.rows}) == 1
    assert "not distinguished" in (tmp_path / "site/index.html").read_text()


def test_other_versions_and_devices_have_tables_of_their_own(tmp_path):
    runs = [
        played(tmp_path / "now", "now", 2.0),
        played(tmp_path / "old", "old", 9.0, protocol_version="1"),
        played(tmp_path / "chip", "chip", 9.0, device="sim:gfx950"),
    ]
    boards = build_leaderboard(runs, tmp_path / "site").boards
    assert [len(board.rows) for board in boards] == [1, 1, 1]
    assert {b.rows[0].policy: b.ranked for b in boards} == {"now": 1, "chip": 1, "old": 0}
    assert "Not ranked" in (tmp_path / "site/index.html").read_text()


def test_each_cell_leads_to_its_source_and_its_replay(tmp_path):
    build_leaderboard([played(tmp_path / "run", MARKUP, 2.0)], tmp_path / "site")
    index = (tmp_path / "site/index.html").read_text()
    data = json.loads((tmp_path / "site/leaderboard.json").read_text())
    cell = data["boards"][0]["rows"][0]["cells"][TASKS[0]]
    page = (tmp_path / "site" / cell["page"]).read_text()
    assert f'href="{cell["page"]}"' in index
    assert f"kernel-gym replay run-1 --task {TASKS[0]}" in page
    assert cell["source_sha256"] in page
    source = (tmp_path / "site/run-1" / cell["source"]).read_text()
    assert source_digest(source) == cell["source_sha256"]
    assert "<script" not in index + page
    _, facts = checked_run(tmp_path / "site/run-1")  # the copy can be checked as the run was
    assert facts.digest == data["boards"][0]["rows"][0]["records_sha256"]


def test_an_unfinished_run_is_listed_without_a_rank(tmp_path):
    run = played(tmp_path / "part", "part", 5.0)
    write_lines(run / RESULTS, RunStore(run).records()[:3])
    (board,) = build_leaderboard(
        [run, played(tmp_path / "whole", "whole", 1.0)], tmp_path / "site"
    ).boards
    assert [row.policy for row in board.rows] == ["whole", "part"]
    assert board.rows[0].below is None
    assert "3 episodes unfinished" in (tmp_path / "site/index.html").read_text()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"reward": 1.0}, "but kernel-opt gives"),
        ({"evaluation__speedup": 10.0}, "not the mean of its workloads"),
        ({"evaluation__workloads__0__speedup": 10.0}, "not the quotient"),
        ({"evaluation__workloads__0__roofline_seconds": -1.0}, "negative"),
        ({"evaluation__source_sha256": "0" * 64}, "another digest"),
        ({"evaluation__task": "hip2hip/rope"}, "of another task"),
        ({"task": "hip2hip/gelu"}, "no task of config.json"),
        ({"source": "../secret.py"}, "is not in sources/"),
        ({"source": "sources/../../x.py"}, "is not in sources/"),
        ({"source": "sources/x.html"}, "ends in none of"),
        ({"turn": 2}, "plans no such turn"),
        ({"sample": 0}, "plans no such turn"),
        ({"evaluation__device": "sim:gfx950"}, "more than one device"),
        ({"evaluation__protocol_version": "2"}, "more than one protocol"),
        ({"evaluation__claim": 1}, "Extra inputs"),
        ({"evaluation__secret_sha256": "1" * 64}, "is not what the records were drawn with"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_figures_that_do_not_follow_are_refused(tmp_path, changes, reason):
    run = changed(played(tmp_path / "run", "cheat", 2.0), **changes)
    board = build_leaderboard([run], tmp_path / "site")
    assert board.boards == ()
    assert reason in board.refused[0].reason
    assert "cheat" not in (tmp_path / "site/index.html").read_text()


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("reward", "os:system", "is none of"),
        ("samples", 10**12, "more than 100,000"),
        ("tasks", [*TASKS, TASKS[0]], "twice"),
    ],
)
def test_a_hostile_configuration_is_refused(tmp_path, field, value, reason):
    run = played(tmp_path / "run", "cheat", 2.0)
    config = json.loads((run / "config.json").read_text()) | {field: value}
    (run / "config.json").write_text(json.dumps(config))
    with pytest.raises(StoreError, match=reason):
        checked_run(run)


def test_links_out_of_the_run_are_refused(tmp_path):
    run = played(tmp_path / "run", "cheat", 2.0)
    shutil.move(run / RESULTS, tmp_path / "elsewhere")
    (run / RESULTS).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="leads out"):
        checked_run(run)


def test_a_changed_source_is_refused(tmp_path):
    run = played(tmp_path / "run", "cheat", 2.0)
    (run / f"sources/{TASKS[0]}/turn_1.py").write_text("# better\n")
    with pytest.raises(StoreError, match="another digest"):
        checked_run(run)


def test_a_source_with_a_lone_surrogate_keeps_its_digest(tmp_path):
    store = RunStore.start(tmp_path, CONFIG, secret=PUBLIC)
    judged = failure(Outcome.SCREENED, Stage.SCREEN)
    evaluation = judged.model_copy(update={"source_sha256": source_digest("x = '\ud800'")})
    episode = Episode(get_task("triton2triton/softmax"))
    record_turn(store, get_reward(), episode, Reply("", "x = '\ud800'"), evaluation)
    checked_run(tmp_path)


def test_the_command_prints_data_and_fails_for_refused_runs(tmp_path, capsys):
    good, bad = played(tmp_path / "good", "good", 2.0), tmp_path / "bad"
    bad.mkdir()
    leaderboard([good], tmp_path / "site")
    assert "index.html" in capsys.readouterr().out
    with pytest.raises(typer.Exit):
        leaderboard([good, bad], tmp_path / "site", json=True)
    shown = capsys.readouterr()
    data = json.loads(shown.out)
    assert data["refused"][0]["folder"] == "bad"
    assert "refused: bad" in shown.err
    assert data["boards"][0]["rows"][0]["against_next"] is None


def test_a_folder_of_something_else_is_not_emptied(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("keep")
    with pytest.raises(InputError, match="something else"):
        build_leaderboard([], tmp_path / "mine")
