"""The vector env: the same episodes as single environments, whatever runs them."""

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics

import kernel_gym  # noqa: F401
from kernel_gym.envs.vector import KernelOptVectorEnv
from kernel_gym.executors import make_executor
from kernel_gym.tasks import get_task

TASK = "triton2triton/softmax"
OPTIONS = {"task": TASK, "device": "sim:gfx942", "max_turns": 2}
SLEEPS = "import time\ntime.sleep(1000)\n"


@pytest.fixture(scope="module")
def executor():
    with make_executor("local", workers=2, device="sim:gfx942") as executor:
        yield executor


@pytest.fixture
def make(executor):
    made = []

    def make(num_envs, **kwargs):
        kwargs = {"executor": executor, **OPTIONS, **kwargs}
        made.append(gymnasium.make_vec("KernelOpt-v0", num_envs=num_envs, **kwargs))
        return made[-1]

    yield make
    for envs in made:
        envs.close()


def one(batch, i):
    """The observation of one environment out of a batch."""
    return {key: value[i] for key, value in batch.items()}


def test_episodes_are_those_of_single_environments(make):
    num_envs, steps = 3, 3
    sources = [["x(", get_task(TASK).start_source, "import ctypes"], ["y("] * 3, ["z("] * 3]
    envs = make(num_envs)
    observations, infos = envs.reset(seed=5)
    batches = [(observations, None, None, infos)]
    for step in range(steps):
        observations, rewards, over, truncated, infos = envs.step(tuple(sources[step]))
        assert observations in envs.observation_space
        assert not truncated.any()
        batches.append((observations, rewards, over, infos))

    for i in range(num_envs):
        env = gymnasium.make("KernelOpt-v0", **OPTIONS)
        observation, _ = env.reset(seed=5 + i)
        assert one(batches[0][0], i) == observation
        for step in range(steps):
            batch, rewards, over, infos = batches[step + 1]
            observation, reward, terminated, _, info = env.step(sources[step][i])
            assert rewards[i] == reward
            assert over[i] == terminated
            if terminated:
                assert infos["final_obs"][i] == observation
                final = infos["final_info"]
                assert final["outcome"][i] == info["outcome"]
                assert final["evaluation"]["seed"][i] == info["evaluation"]["seed"]
                observation, info = env.reset()
            else:
                assert infos["outcome"][i] == info["outcome"]
            assert one(batch, i) == observation


def test_it_is_what_make_vec_gives():
    envs = gymnasium.make_vec("KernelOpt-v0", num_envs=2, workers=1, **OPTIONS)
    assert isinstance(envs, KernelOptVectorEnv)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert envs.executor.workers == 1
    envs.reset(seed=0)
    assert envs.step(envs.action_space.sample())[1].shape == (2,)
    envs.close()
    envs.close()


def test_no_action_is_swallowed(make):
    envs = make(2, max_turns=1)
    envs.reset(seed=0)
    for _ in range(3):
        _, rewards, terminated, _, infos = envs.step(("x(", "import ctypes"))
        assert rewards.tolist() == [0.02, 0.0]
        assert terminated.all()
        assert infos["final_info"]["outcome"].tolist() == ["compile_error", "screened"]


def test_any_text_is_batched_whole(make):
    envs = make(2)
    envs.reset(seed=0)
    observations, *_ = envs.step(("∑ = (", "é" * 1000))
    assert all(isinstance(text, str) and "naïve" not in text for text in observations["feedback"])
    assert observations["task"][0] == observations["task"][1]
    assert len(observations["task"][0]) > 1000


def test_a_hung_worker_is_replaced_and_the_episodes_go_on():
    envs = gymnasium.make_vec(
        "KernelOpt-v0", num_envs=2, workers=2, executor_kwargs={"deadline": 2.0}, **OPTIONS
    )
    envs.reset(seed=0)
    observations, rewards, terminated, _, infos = envs.step((SLEEPS, "x("))
    assert infos["masked"].tolist() == [True, False]
    assert rewards.tolist() == [0.0, 0.02]
    assert observations["turn"].tolist() == [1, 1]
    assert not terminated.any()
    *_, infos = envs.step(("x(", "x("))
    assert infos["final_info"]["masked"].tolist() == [False, False]
    assert envs.executor.replaced == 1
    envs.close()


def test_vector_wrappers_work(make):
    envs = DictInfoToList(RecordEpisodeStatistics(make(2)))
    envs.reset(seed=0)
    envs.step(("x(", "y("))
    _, _, terminated, _, infos = envs.step(("import ctypes", "y("))
    assert terminated.all()
    assert [info["final_info"]["turn"] for info in infos] == [2, 2]
    returns = [info["episode"]["r"] for info in infos]
    assert returns == pytest.approx([0.02, 0.04])


@pytest.mark.ray
@pytest.mark.sweep
def test_episodes_over_ray_are_the_same(cluster, make):
    def play(**kwargs):
        envs = make(2, **kwargs)
        envs.reset(seed=1)
        _, rewards, _, _, infos = envs.step(("x(", get_task(TASK).start_source))
        return rewards.tolist(), infos["evaluation"]["seed"].tolist(), infos["outcome"].tolist()

    assert play(executor="ray", executor_kwargs={"arch": "gfx942"}) == play()


def test_bad_arguments_are_refused(make):
    with pytest.raises(ValueError, match="render_mode"):
        KernelOptVectorEnv(num_envs=1, render_mode="human", **OPTIONS)
    envs = make(2)
    with pytest.raises(ValueError, match="found 1 seeds, expected 2"):
        envs.reset(seed=[1])
    envs.reset(seed=[1, None])
    with pytest.raises(ValueError, match="found 1, expected 2"):
        envs.step(("x(",))
    assert np.array_equal(envs.reset(options={"task": TASK})[0]["turn"], [0, 0])


def test_a_part_of_the_environments_is_reset(make):
    envs = make(3, autoreset_mode="Disabled", max_turns=1)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.DISABLED
    envs.reset(seed=0)
    after, _, terminated, _, infos = envs.step(("x(", "y(", "z("))
    assert terminated.all()
    assert "final_obs" not in infos
    mask = np.array([True, False, True])
    observations, infos = envs.reset(options={"reset_mask": mask})
    assert observations["turn"].tolist() == [0, 1, 0]
    assert observations["feedback"][1] == after["feedback"][1]
    assert infos["_task"].tolist() == mask.tolist()
    with pytest.raises(ResetNeeded):
        envs.step(("x(", "y(", "z("))


@pytest.mark.parametrize("mask", [[True], [1, 0], np.array([False, False])])
def test_a_mask_that_is_none_is_refused(make, mask):
    envs = make(2)
    envs.reset(seed=0)
    with pytest.raises(ValueError, match="reset_mask"):
        envs.reset(options={"reset_mask": mask})


def test_a_mask_cannot_leave_out_what_never_began(make):
    with pytest.raises(ResetNeeded):
        make(2).reset(options={"reset_mask": np.array([True, False])})


def test_the_mode_that_ignores_actions_is_refused(make):
    with pytest.raises(ValueError, match="expected SameStep or Disabled"):
        make(1, autoreset_mode="NextStep")


def test_attributes_and_methods_are_those_of_each_environment(make):
    envs = make(2)
    envs.reset(seed=0)
    assert envs.get_attr("device_name") == ("sim:gfx942",) * 2
    assert envs.call("render") == (None, None)
    envs.set_attr("mark", [1, 2])
    assert envs.get_attr("mark") == (1, 2)
    envs.set_attr("mark", 3)
    assert envs.get_attr("mark") == (3, 3)
    with pytest.raises(ValueError, match="found 3, expected 2"):
        envs.set_attr("mark", [1, 2, 3])


def test_schedules_are_tuned_in_parallel_as_in_single_environments(executor):
    options = {"task": "triton2triton/layer_norm", "max_turns": 2}
    actions = np.array([[1, 2, 0], [2, 2, 1]])
    envs = gymnasium.make_vec("KernelTune-v0", num_envs=2, executor=executor, **options)
    envs.reset(seed=0)
    observations, rewards, *_, infos = envs.step(actions)
    assert observations in envs.observation_space
    assert infos["outcome"].tolist() == ["passed"] * 2
    env = gymnasium.make("KernelTune-v0", executor=executor, **options)
    for i, action in enumerate(actions):
        env.reset(seed=0)
        observation, reward, *_ = env.step(action)
        assert reward == rewards[i]
        assert (observation == observations[i]).all()
    envs.close()
