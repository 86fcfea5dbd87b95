"""The view `improve:TASK`: it starts from a stored right kernel and pays the gain over it."""

import pytest

from kernel_gym.envs.sessions import Sessions
from kernel_gym.episodes.starts import NoStart
from kernel_gym.policies.evaluate import evaluate_policy

TASK = "triton2triton/softmax"
VIEW = f"improve:{TASK}"
DEVICE = "sim:gfx942"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run whose only right kernel is the baseline."""
    folder = tmp_path_factory.mktemp("run") / "run"
    evaluate_policy("baseline", TASK, device=DEVICE, executor="inline", out=folder, turns=1)
    return folder


def test_the_prompt_shows_the_kernel_and_its_feedback(run):
    session = Sessions(task=VIEW, device=DEVICE, starts=run).begin(seed=0)
    assert session.task.id == TASK
    assert "## Kernel to improve" in session.prompt
    assert "Correct on every workload" in session.prompt


def test_the_stored_kernel_itself_gains_nothing_and_a_wrong_one_loses(run):
    session = Sessions(task=VIEW, device=DEVICE, starts=run).begin(seed=0)
    start = session.episode.start
    wrong, same = session.submit("x("), session.submit(start)
    assert wrong.episode_reward < 0.0
    assert same.episode_reward == pytest.approx(0.0, abs=0.02)
    assert wrong.increment + same.increment == pytest.approx(session.reward)


def test_a_view_without_a_kernel_is_told(run):
    with pytest.raises(NoStart, match=r"kernels of: triton2triton/softmax"):
        Sessions(task="improve:triton2triton/gelu", device=DEVICE, starts=run)
    with pytest.raises(NoStart, match="no task at all"):
        Sessions(task=VIEW, device=DEVICE)
    with pytest.raises(KeyError, match="did you mean"):
        Sessions(task=f"{VIEW}x", device=DEVICE, starts=run)
