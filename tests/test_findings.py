"""The file of findings: what a later run takes from it, and what it plays again."""

import pytest

from kernel_gym.exploits import Finding, Honest
from kernel_gym.findings import FindingsFile
from kernel_gym.lines import StoreError, append_line
from kernel_gym.records import Outcome, Stage
from kernel_gym.tasks import get_task
from tests.records import failure, passing

DEVICE = "sim:gfx942"
TASK = get_task("triton2triton/softmax")
CANDIDATES = [Honest(name, TASK, f"# {name}") for name in ("one", "two", "three")]


def finding(candidate, evaluation=None, **changes):
    from kernel_gym.executors.cache import Key

    key = Key.of(TASK.id, candidate.source, DEVICE, seed=0)
    own = {"task": TASK.id, "device": DEVICE, "source_sha256": key.source_sha256}
    own |= {"protocol_version": key.protocol} | changes
    return Finding(candidate, (evaluation or passing(1.5, 1.2)).model_copy(update=own))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs" / "found.jsonl"


def names(found):
    return [f.candidate.name for f in found]


def test_a_later_run_knows_what_was_found(path):
    FindingsFile(path).add(finding(CANDIDATES[1]))
    FindingsFile(path, resume=True).add(finding(CANDIDATES[0]))
    known = FindingsFile(path, resume=True).known(CANDIDATES, DEVICE)
    assert known == [finding(CANDIDATES[1]), finding(CANDIDATES[0])]
    assert all(f.right for f in known)


@pytest.mark.parametrize(
    "changes",
    [
        {"source_sha256": "0" * 64},
        {"device": "cuda:0"},
        {"protocol_version": "0"},
        {"task": "hip2hip/softmax"},
        {"outcome": Outcome.INFRA},
    ],
)
def test_what_was_found_otherwise_is_played_again(path, changes):
    file = FindingsFile(path)
    file.add(finding(CANDIDATES[0], **changes))
    file.add(finding(CANDIDATES[1], failure(Outcome.WRONG_VALUES, Stage.TRAIN)))
    again = FindingsFile(path, resume=True)
    assert names(again.known(CANDIDATES, DEVICE)) == ["two"]
    again.add(finding(CANDIDATES[0]))
    assert names(FindingsFile(path, resume=True).known(CANDIDATES, DEVICE)) == ["two", "one"]


def test_what_was_found_of_others_stays(path):
    file = FindingsFile(path)
    for candidate in CANDIDATES:
        file.add(finding(candidate))
    assert names(FindingsFile(path, resume=True).known(CANDIDATES[:1], DEVICE)) == ["one"]
    assert len(FindingsFile(path, resume=True).known(CANDIDATES, DEVICE)) == 3


def test_a_file_is_not_written_over(path):
    FindingsFile(path).add(finding(CANDIDATES[0]))
    with pytest.raises(StoreError, match="is there already: give --resume"):
        FindingsFile(path)


def test_a_line_that_a_crash_cut_off_is_played_again(path):
    FindingsFile(path).add(finding(CANDIDATES[0]))
    with path.open("a") as lines:
        lines.write('{"name": "two", "evalu')
    file = FindingsFile(path, resume=True)
    assert names(file.known(CANDIDATES, DEVICE)) == ["one"]
    file.add(finding(CANDIDATES[1]))
    assert names(FindingsFile(path, resume=True).known(CANDIDATES, DEVICE)) == ["one", "two"]


def test_another_file_is_not_taken_for_one(path):
    path.parent.mkdir()
    append_line(path, passing(1.5, 1.2))
    with pytest.raises(StoreError, match="line 1: name"):
        FindingsFile(path, resume=True)


@pytest.mark.parametrize("name", ["", "a_file/found.jsonl"])
def test_a_path_where_no_file_can_be_is_bad_input(tmp_path, name):
    (tmp_path / "a_file").touch()
    with pytest.raises(StoreError, match="expected a file to keep findings in"):
        FindingsFile(tmp_path / name, resume=True)
