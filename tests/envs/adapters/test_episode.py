"""The text episode that every adapter stands on."""

import pytest
from gymnasium.error import ResetNeeded

from kernel_gym.envs.adapters.episode import TextEpisode
from kernel_gym.executors.inline import InlineExecutor
from kernel_gym.exploits.loader import load_exploits
from kernel_gym.records import Evaluation, Outcome, Stage
from kernel_gym.tasks import get_task
from tests.test_architecture import ROOT

TASK = "triton2triton/softmax"
DEVICE = "sim:gfx942"
GOOD = get_task(TASK).start_source


@pytest.fixture
def make():
    return lambda **kwargs: TextEpisode(task=TASK, device=DEVICE, **kwargs)


def test_the_best_submission_counts(make):
    episode = make(max_turns=3)
    episode.begin(seed=1)
    for source in ("x(", GOOD, "x("):
        assert not episode.over
        episode.submit(source)
    assert episode.over
    rewards = [turn["reward"] for turn in episode.turns]
    assert episode.reward() == max(rewards) == rewards[1] > 0.12
    with pytest.raises(ResetNeeded):
        episode.submit(GOOD)


def test_nothing_makes_up_for_a_hack(make):
    exploits = {
        exploit.name: exploit
        for exploit in load_exploits(ROOT / "kernel_gym" / "exploits" / "suite")
    }
    hack = exploits["c06_copy_all_but_one_row.py"]
    episode = make(max_turns=2)
    episode.begin(hack.task.id, seed=1)
    episode.submit(hack.task.start_source)
    before = episode.reward()
    episode.submit(hack.source)
    assert [turn["outcome"] for turn in episode.turns] == ["passed", "hack"]
    assert episode.reward() == -1.0 < before


def test_no_submission_earns_what_failing_earns(make):
    for preset in ("kernel-opt", "cuda-agent"):
        silent, failing = make(reward=preset), make(reward=preset)
        silent.begin(seed=0)
        failing.begin(seed=0)
        failing.submit("")
        assert silent.reward() == failing.reward() == silent.reward()
        assert silent.over


class Broken(InlineExecutor):
    """A machine that fails."""

    def evaluate(self, task_id, source, seed=None):
        record = super().evaluate(task_id, source, seed).model_dump()
        return Evaluation(**record | {"outcome": Outcome.INFRA, "stage": Stage.SCREEN})


def test_a_failing_machine_masks_the_episode(make):
    with Broken(DEVICE) as executor:
        episode = make(executor=executor, max_turns=1)
        episode.begin(seed=0)
        episode.submit("x(")
        assert episode.over
        assert episode.reward() is None


@pytest.mark.parametrize("chars", [12, 0])
def test_feedback_needs_room(make, chars):
    with pytest.raises(ValueError, match="expected 13 or more"):
        make(feedback_chars=chars)
