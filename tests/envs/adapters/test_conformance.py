"""One test for all adapters: the same submissions give the same return under every trainer.

Packages that are not installed are left out. `scripts/conformance.sh` makes environments with those
that the tests of this project cannot have beside their own.
"""

import asyncio
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import cache
from itertools import cycle, islice, product
from types import SimpleNamespace

import pytest

from kernel_gym.envs.adapters import scoring
from kernel_gym.envs.sessions import Sessions
from kernel_gym.episodes.session import MaskedEvaluation
from kernel_gym.executors.cache import EvaluationCache
from kernel_gym.executors.inline import InlineExecutor
from kernel_gym.exploits.loader import load_exploits
from kernel_gym.records import Evaluation, Outcome, Stage
from kernel_gym.tasks import get_task
from tests.test_architecture import ROOT

DEVICE = "sim:gfx942"
TASK = "triton2triton/softmax"
SEED = 3
TURNS = 3
RIGHT = get_task(TASK).start_source
WRONG = "def softmax(x):\n    return x\n"


@cache
def better():
    path = ROOT / "kernel_gym" / "policies" / "examples" / TASK / "3_good.py"
    return path.read_text(encoding="utf-8")


@cache
def hack():
    exploits = {e.name: e for e in load_exploits(ROOT / "kernel_gym" / "exploits" / "suite")}
    return exploits["c06_copy_all_but_one_row.py"]


class Machine(InlineExecutor):
    """The simulator; sources with the word BROKEN meet a failure of the machine."""

    def _start(self, request):
        future = super()._start(request)
        if "BROKEN" not in request.source:
            return future
        record = future.result().model_dump()
        failed = Evaluation(**record | {"outcome": Outcome.INFRA, "stage": Stage.SCREEN})
        answer = type(future)()
        answer.set_result(failed)
        return answer


@pytest.fixture(scope="module")
def executor():
    with Machine(DEVICE) as executor:
        yield executor


@pytest.fixture
def sessions(executor, monkeypatch):
    """The sessions that every adapter uses in this test."""
    sessions = Sessions(executor, task=TASK, max_turns=TURNS)
    monkeypatch.setattr(scoring, "process_sessions", lambda *_: sessions)
    return sessions


def use(monkeypatch, module, sessions):
    monkeypatch.setattr(module, "process_sessions", lambda *_: sessions)


# Players of episodes: each takes the sessions, a task and the replies, and returns what the trainer
# takes for the episode: the sum of step rewards, or the reward of the episode.


def session(sessions, task, replies, monkeypatch):
    playing = sessions.begin(task, SEED)
    return sum(playing.submit(reply).number() for reply in replies)


def gymnasium_env(sessions, task, replies, monkeypatch):
    from kernel_gym.envs.kernel_opt import KernelOptEnv

    env = KernelOptEnv(task=task, device=DEVICE, max_turns=TURNS)
    env.reset(seed=SEED)
    total = 0.0
    for reply in replies:
        request = env.request(reply)
        evaluation = sessions.executor.evaluate(request.task, reply, request.seed)
        info = env.conclude(reply, evaluation)[4]
        if info["masked"]:
            raise MaskedEvaluation
        total += info["increment"]
    return total


def trl(sessions, task, replies, monkeypatch):
    pytest.importorskip("trl")
    from kernel_gym.envs.adapters.trl import KernelTools

    tools = KernelTools(executor=sessions.executor, task=task, max_turns=TURNS)
    tools.reset(task, SEED)
    for reply in replies:
        tools.submit_kernel(reply)
    reward = tools.get_reward()
    if reward is None:  # TRL leaves it out
        raise MaskedEvaluation
    return reward


def openenv(sessions, task, replies, monkeypatch):
    pytest.importorskip("openenv.core.env_server", exc_type=ImportError)
    from kernel_gym.envs.adapters.openenv_client import KernelAction
    from kernel_gym.envs.adapters.openenv_environment import KernelEnvironment

    env = KernelEnvironment(sessions)
    env.reset(seed=SEED, task=task)
    rewards = [env.step(KernelAction(source=reply)).reward for reply in replies]
    return sum(reward or 0.0 for reward in rewards)  # as the taskset of verifiers sums them


def verifiers(sessions, task, replies, monkeypatch):
    pytest.importorskip("verifiers.v1")
    from kernel_gym.envs.adapters import verifiers as adapter

    use(monkeypatch, adapter, sessions)
    config = adapter.KernelTasksetConfig(tasks=(task,), seed=SEED)
    (row,) = adapter.KernelTaskset(config)
    rewards, waiting = {}, iter(replies)

    class Interaction:
        trace = SimpleNamespace(record_reward=rewards.__setitem__)

        async def turn(self, message):
            reply = next(waiting, None)
            return SimpleNamespace(last_reply=reply or "", terminated=reply is None)

    @asynccontextmanager
    async def interaction(task):
        yield Interaction()

    env = object.__new__(adapter.VerifiersKernelEnv)
    env.config = adapter.KernelEnvConfig(max_turns=TURNS)
    agents = SimpleNamespace(player=SimpleNamespace(interaction=interaction))
    asyncio.run(env.run(row, agents))
    return rewards["kernel_reward"]


def skyrl(sessions, task, replies, monkeypatch):
    skyrl_gym = pytest.importorskip("skyrl_gym")
    from kernel_gym.envs.adapters import skyrl as adapter

    use(monkeypatch, adapter, sessions)
    adapter.register()
    extras = {"task": task, "seed": SEED, "max_turns": TURNS}
    env = skyrl_gym.make(adapter.NAME, env_config={}, extras=extras)
    env.init([{"role": "user", "content": "p"}])
    return sum(env.step(reply)["reward"] for reply in replies)


def verl(sessions, task, replies, monkeypatch):
    pytest.importorskip("verl.tools.base_tool")
    from kernel_gym.envs.adapters.verl import KernelTool

    async def play():
        tool = KernelTool({"max_turns": TURNS}, sessions=sessions)
        name, _ = await tool.create(task=task, seed=SEED)
        rewards = [(await tool.execute(name, {"source": reply}))[1] for reply in replies]
        assert await tool.calc_reward(name) == pytest.approx(sum(rewards))
        await tool.release(name)
        return sum(rewards)

    return asyncio.run(play())


def tinker(sessions, task, replies, monkeypatch):
    pytest.importorskip("tinker_cookbook.rl.message_env")
    from kernel_gym.envs.adapters.tinker import KernelMessageEnv
    from kernel_gym.envs.adapters.tinker_dataset import KernelGroup

    group = KernelGroup(task, 2, "model", "renderer", TURNS, SEED)
    assert pickle.loads(pickle.dumps(group)) == group

    async def play():
        env = KernelMessageEnv(task, TURNS, SEED, sessions)
        assert (await env.initial_observation())[0]["role"] == "user"
        steps = [await env.step({"role": "assistant", "content": reply}) for reply in replies]
        return sum(step.reward for step in steps)

    return asyncio.run(play())


def openrlhf(sessions, task, replies, monkeypatch):
    pytest.importorskip("openrlhf.utils.agent")
    import torch

    from kernel_gym.envs.adapters import openrlhf as adapter

    use(monkeypatch, adapter, sessions)
    monkeypatch.setattr(adapter.KernelAgent, "seed", SEED)
    monkeypatch.setattr(adapter.KernelAgent, "max_turns", len(replies))
    waiting = iter(replies)

    def tokenizer(text, **_):
        return {"input_ids": torch.zeros(1, 1, dtype=torch.long)}

    class Engine:
        async def generate(self, *_, **__):
            reply = next(waiting)
            output = SimpleNamespace(token_ids=[1], text=reply, finish_reason="stop", logprobs=None)
            return SimpleNamespace(outputs=[output])

    params = SimpleNamespace(max_tokens=8, logprobs=None)
    executor = adapter.AgentExecutor()
    done = asyncio.run(executor.execute("p", task, params, 1000, tokenizer, Engine()))
    return done["reward"]


EPISODES = (
    session, gymnasium_env, trl, openenv, verifiers, skyrl, verl, tinker, openrlhf,
)  # fmt: skip


@pytest.fixture
def play(request, sessions, monkeypatch):
    return lambda replies, task=TASK: request.param(sessions, task, replies, monkeypatch)


everywhere = pytest.mark.parametrize("play", EPISODES, indirect=True, ids=lambda p: p.__name__)


@everywhere
def test_the_same_submissions_have_the_same_return(play, sessions):
    replies = [WRONG, RIGHT, better()]
    episode = sessions.begin(TASK, SEED)
    rewards = [episode.submit(reply).reward for reply in replies]
    assert rewards[0] < rewards[1] < rewards[2]
    assert play(replies) == pytest.approx(rewards[2])


@everywhere
def test_a_kernel_submitted_again_gains_nothing(play):
    assert play([RIGHT] * TURNS) == pytest.approx(play([RIGHT]))


@everywhere
def test_a_hack_poisons_the_episode(play):
    task = hack().task
    replies = [task.start_source, hack().source, task.start_source]
    assert play(replies, task.id) == pytest.approx(-1.0)


@everywhere
def test_an_evaluation_that_the_machine_lost_is_no_number(play):
    with pytest.raises(MaskedEvaluation):
        play(["BROKEN("] * TURNS)


class Shared(Machine):
    """One machine for many threads, which evaluates the same kernel once."""

    def __init__(self):
        super().__init__(DEVICE, cache=EvaluationCache())
        self._lock = threading.Lock()

    def _start(self, request):
        with self._lock:
            return super()._start(request)


@pytest.fixture(scope="module")
def hundred():
    """Sessions of one machine, the replies of a hundred episodes, and what each returns alone."""
    with Shared() as executor:
        sessions = Sessions(executor, task=TASK, max_turns=TURNS)
        orders = list(islice(cycle(product((WRONG, RIGHT, better()), repeat=TURNS)), 100))
        yield sessions, orders, [session(sessions, TASK, order, None) for order in orders]


@pytest.mark.slow
@pytest.mark.parametrize("player", EPISODES, ids=lambda player: player.__name__)
def test_a_hundred_episodes_at_a_time_do_not_mix(player, hundred, monkeypatch):
    sessions, orders, alone = hundred
    assert len(set(alone)) >= 3
    monkeypatch.setattr(scoring, "process_sessions", lambda *_: sessions)
    with ThreadPoolExecutor(100) as threads:
        playing = [threads.submit(player, sessions, TASK, order, monkeypatch) for order in orders]
        together = [one.result() for one in playing]
    assert together == pytest.approx(alone)


# Functions that score one reply: each returns its reward, or raises, or gives None.


def verl_score(sessions, monkeypatch, reply):
    pytest.importorskip("verl.tools.base_tool")
    omegaconf = pytest.importorskip("omegaconf")
    from verl.trainer.ppo.reward import get_custom_reward_fn

    custom = {"path": "pkg://kernel_gym.envs.adapters.verl", "name": "compute_score"}
    config = omegaconf.OmegaConf.create({"reward": {"custom_reward_function": custom}})
    score = get_custom_reward_fn(config)
    row = {"data_source": "kernel_gym", "ground_truth": TASK, "extra_info": {"seed": SEED}}
    return asyncio.run(score(solution_str=reply, **row))["score"]


def slime_score(sessions, monkeypatch, reply):
    from enum import Enum

    from kernel_gym.envs.adapters.slime import custom_rm

    Status = Enum("Status", {"PENDING": "pending", "ABORTED": "aborted"})
    sample = SimpleNamespace(
        response=reply, label=TASK, metadata={"seed": SEED}, status=Status.PENDING,
        remove_sample=False,
    )  # fmt: skip
    alone = asyncio.run(custom_rm(None, sample))
    assert asyncio.run(custom_rm(None, [sample, sample])) == [alone, alone]
    assert sample.remove_sample == (alone is None) == (sample.status is Status.ABORTED)
    return alone


def openrlhf_score(sessions, monkeypatch, reply):
    from kernel_gym.envs.adapters.openrlhf import reward_func

    begin = sessions.begin
    monkeypatch.setattr(
        sessions, "begin", lambda task, seed=None, **more: begin(task, SEED, **more)
    )
    told = reward_func([f"p{reply}"], ["p"], [TASK])
    assert told["rewards"].shape == (1,)
    return float(told["rewards"])


def nemo_gym(sessions, monkeypatch, reply):
    pytest.importorskip("nemo_gym")
    from fastapi.testclient import TestClient
    from nemo_gym.base_resources_server import BaseResourcesServerConfig
    from nemo_gym.server_utils import ServerClient

    from kernel_gym.envs.adapters.nemo_gym import KernelServer

    config = BaseResourcesServerConfig(
        host="127.0.0.1", port=1, entrypoint="app.py", name="kernels"
    )
    server = KernelServer(config=config, server_client=ServerClient.model_construct())
    part = {"type": "output_text", "text": reply, "annotations": []}
    message = {
        "id": "m", "type": "message", "role": "assistant", "status": "completed", "content": [part],
    }  # fmt: skip
    response = {
        "id": "r", "created_at": 0, "model": "m", "object": "response", "output": [message],
        "parallel_tool_calls": False, "tool_choice": "none", "tools": [],
    }  # fmt: skip
    row = {"responses_create_params": {"input": []}, "task": TASK, "seed": SEED}
    with TestClient(server.setup_webserver()) as http:
        assert http.post("/verify", json=row).status_code == 422
        unknown = http.post("/verify", json=row | {"response": response, "task": f"{TASK}x"})
        answer = http.post("/verify", json=row | {"response": response})
    assert unknown.status_code == 404
    assert "did you mean" in unknown.json()["detail"]
    if "BROKEN" not in reply:
        assert answer.json()["task"] == TASK
        return answer.json()["reward"]
    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) > 0
    return None


SCORES = (verl_score, slime_score, openrlhf_score, nemo_gym)


@pytest.mark.parametrize("score", SCORES, ids=lambda function: function.__name__)
def test_a_single_reply_has_the_reward_of_its_episode(score, sessions, monkeypatch):
    for source in (WRONG, RIGHT, better()):
        expected = sessions.begin(TASK, SEED, max_turns=1).submit(source).reward
        reply = f"Here it is.\n```python\n{source}```\n"
        assert score(sessions, monkeypatch, reply) == pytest.approx(expected)


@pytest.mark.parametrize("score", SCORES, ids=lambda function: function.__name__)
def test_a_single_reply_that_the_machine_lost_is_no_number(score, sessions, monkeypatch):
    try:
        told = score(sessions, monkeypatch, "BROKEN(")
    except MaskedEvaluation:
        told = None
    assert told is None


def test_an_unknown_task_is_told():
    with pytest.raises(KeyError, match="did you mean"):
        asyncio.run(scoring.score("x", f"{TASK}x", sessions=Sessions("inline", device=DEVICE)))
