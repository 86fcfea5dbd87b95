"""The submissions of the scripted policies."""

import pytest

from kernel_gym.episodes.episode import Episode
from kernel_gym.policies import Baseline, Folder, PolicyError, make_policy
from kernel_gym.records import Outcome, Stage
from kernel_gym.rewards import RewardResult
from kernel_gym.tasks import get_task
from tests.records import failure

TASK = get_task("triton2triton/softmax")
WRONG = failure(Outcome.WRONG_VALUES, Stage.TRAIN)


def play(policy, task=TASK):
    """Everything that a policy submits on a task."""
    episode, sources = Episode(task), []
    while (source := policy.submit(episode)) is not None:
        sources.append(source)
        episode = episode.after("x", WRONG, RewardResult(0.05))
    return sources


def test_the_baseline_submits_the_start_kernel_once():
    assert play(Baseline()) == [TASK.start_source]


def test_the_baseline_of_a_torch_task_is_the_problems_kernel():
    (source,) = play(Baseline(), get_task("torch2triton/softmax"))
    assert source == TASK.start_source


def test_a_folder_submits_one_file(tmp_path):
    (tmp_path / "triton2triton").mkdir()
    (tmp_path / "triton2triton" / "softmax.py").write_text("one")
    assert play(Folder(tmp_path)) == ["one"]


def test_a_folder_submits_numbered_files_in_order(tmp_path):
    folder = tmp_path / "triton2triton" / "softmax"
    folder.mkdir(parents=True)
    for name in ("10_last.py", "2_second.py", "1_first.py", "notes.py", "3_other.hip"):
        (folder / name).write_text(name)
    assert play(Folder(tmp_path)) == ["1_first.py", "2_second.py", "10_last.py"]


def test_a_task_without_files_gets_no_submission(tmp_path):
    assert play(Folder(tmp_path)) == []


def test_hip_sources_end_in_hip(tmp_path):
    (tmp_path / "hip2hip").mkdir()
    (tmp_path / "hip2hip" / "transpose.hip").write_text("hip")
    assert play(Folder(tmp_path), get_task("hip2hip/transpose")) == ["hip"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("basline", "did you mean baseline"),
        ("folder", "unknown policy 'folder'; did you mean folder:PATH"),
        ("folder:no/where", "no/where is no folder"),
        ("zzz", "known: baseline, examples, folder:PATH"),
        ("replay:no/where", "no/where holds no run"),
        ("baseline:x", "did you mean baseline"),
    ],
)
def test_a_name_that_does_not_work_says_why(name, message):
    with pytest.raises(PolicyError, match=message):
        make_policy(name)
