"""OpenEnv's own server and client, over a socket."""

import threading

import pytest

from kernel_gym.executors import make_executor
from kernel_gym.tasks import get_task

pytest.importorskip("openenv")

TASK = "triton2triton/softmax"
GOOD = get_task(TASK).start_source


@pytest.fixture(scope="module")
def url():
    """A server in this process, on a port that the system chose."""
    import uvicorn

    from kernel_gym.envs.adapters.openenv import make_app

    with make_executor("local", device="sim:gfx942", workers=2) as executor:
        app = make_app(executor, sessions=2, task=TASK, max_turns=2)
        listening = threading.Event()

        class Server(uvicorn.Server):
            async def startup(self, sockets=None):
                await super().startup(sockets)
                listening.set()

        server = Server(uvicorn.Config(app, port=0, log_level="error"))
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        assert listening.wait(60)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        server.should_exit = True
        thread.join()


@pytest.fixture
def connect(url):
    """Opens sessions and closes them."""
    from kernel_gym.envs.adapters.openenv_client import KernelClient

    opened = []

    def client():
        opened.append(KernelClient(base_url=url).sync().connect())
        return opened[-1]

    yield client
    for one in opened:
        one.close()


def test_a_client_waits_as_long_as_an_evaluation_may_take():
    from kernel_gym.envs.adapters.openenv_client import KernelClient
    from kernel_gym.executors.supervised import DEADLINE

    assert KernelClient(base_url="http://localhost:1")._message_timeout > DEADLINE
    other = KernelClient(base_url="http://localhost:1", message_timeout_s=5, connect_timeout_s=3)
    assert (other._message_timeout, other._connect_timeout) == (5, 3)


def submit(client, source):
    from kernel_gym.envs.adapters.openenv_client import KernelAction

    return client.step(KernelAction(source=source))


def test_an_episode_over_the_wire_is_that_of_the_environment(connect):
    import gymnasium

    import kernel_gym  # noqa: F401

    client = connect()
    started = client.reset(seed=3)
    results = [submit(client, source) for source in ("x(", GOOD)]
    env = gymnasium.make("KernelOpt-v0", task=TASK, device="sim:gfx942", max_turns=2)
    observation, _ = env.reset(seed=3)
    assert started.observation.task == observation["task"]
    for result, source in zip(results, ("x(", GOOD), strict=True):
        observation, reward, done, _, info = env.step(source)
        assert result.reward == result.observation.reward == info["increment"]
        assert result.observation.submission_reward == reward
        assert result.done == done
        assert result.observation.outcome == info["outcome"]
        assert result.observation.feedback == observation["feedback"][:2000]
        assert result.observation.best_speedup == float(observation["best_speedup"])
    state = client.state()
    assert (state.task, state.step_count, state.episode_reward) == (TASK, 2, info["episode_reward"])


def test_sessions_are_apart_and_bounded(connect):
    one, other = connect(), connect()
    one.reset(seed=0)
    other.reset(seed=0, task="triton2triton/gelu")
    submit(one, "x(")
    assert [client.state().step_count for client in (one, other)] == [1, 0]
    assert other.state().task == "triton2triton/gelu"
    with pytest.raises(Exception, match=r"(?i)capacity|sessions|full"):
        connect().reset(seed=0)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [({"task": "triton2triton/softmaxx"}, "triton2triton/softmax"), ({"shape": 1}, "shape")],
)
def test_a_mistake_is_told_and_the_session_lives(connect, arguments, told):
    client = connect()
    with pytest.raises(Exception, match=told):
        client.reset(**arguments)
    assert "softmax" in client.reset(seed=0).observation.task


def test_a_server_with_a_bad_name_does_not_start():
    from kernel_gym.envs.adapters.openenv import make_app

    with (
        make_executor("inline", device="sim:gfx942") as executor,
        pytest.raises(ValueError, match="kernel-opt"),
    ):
        make_app(executor, sessions=1, task=TASK, reward="kernel_opt")
