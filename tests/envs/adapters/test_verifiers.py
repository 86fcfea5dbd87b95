"""The environment under the loop of `verifiers`, with a model whose replies are written here."""

import asyncio

import pytest

from kernel_gym.executors.inline import InlineExecutor
from kernel_gym.records import Evaluation, Outcome, Stage
from kernel_gym.tasks import get_task

vf = pytest.importorskip("verifiers")

TASK = "triton2triton/softmax"
DEVICE = "sim:gfx942"
GOOD = f"Here it is.\n```python\n{get_task(TASK).start_source}```\n"


def client(replies):
    """A client that gives these replies, by the number of messages it is shown."""
    from verifiers.clients import Client
    from verifiers.types import Response, ResponseMessage

    class Scripted(Client):
        def setup_client(self, config):
            return config

        async def to_native_tool(self, tool):
            return tool

        async def to_native_prompt(self, messages):
            return messages, {}

        async def get_native_response(self, prompt, model, sampling_args, tools=None, **_):
            return replies[len(prompt) // 2]

        async def raise_from_native_response(self, response):
            pass

        async def from_native_response(self, response):
            message = ResponseMessage(content=response, finish_reason="stop", is_truncated=False)
            return Response(id="0", created=0, model="scripted", message=message)

        async def close(self):
            pass

    return Scripted(None)


def play(environment, replies, rollouts=1):
    run = environment.evaluate(
        client(replies), "scripted", rollouts_per_example=rollouts, on_progress=[]
    )
    return asyncio.run(run)["outputs"]


def test_a_rollout_is_an_episode():
    from kernel_gym.envs.adapters.verifiers import load_environment

    environment = load_environment(TASK, device=DEVICE, max_turns=2, deterministic=True)
    try:
        outputs = play(environment, ["x(", GOOD], rollouts=2)
    finally:
        asyncio.run(environment.close_executor())
    assert len(outputs) == 2
    for output in outputs:
        assert output["reward"] == output["metrics"]["kernel_reward"] > 0.12
        assert output["metrics"]["num_turns"] == 2
        assert output["error"] is None
        said = [str(message["content"]) for message in output["completion"]]
        assert said[0::2] == ["x(", GOOD]
        assert "Does not compile" in said[1]
        assert "modelled" in said[3]
    assert "softmax" in outputs[0]["prompt"][0]["content"]


def test_every_task_of_a_suite_is_a_row():
    from kernel_gym.envs.adapters.verifiers import KernelChat

    tasks = [TASK, "triton2triton/gelu"]
    with InlineExecutor(DEVICE) as executor:
        rows = KernelChat(executor, tasks).get_dataset()
    assert [row["info"]["kernel_task"] for row in rows] == tasks


class Broken(InlineExecutor):
    """A machine that fails."""

    def evaluate(self, task_id, source, seed=None):
        record = super().evaluate(task_id, source, seed).model_dump()
        return Evaluation(**record | {"outcome": Outcome.INFRA, "stage": Stage.SCREEN})


def test_a_failing_machine_is_an_error_and_no_reward():
    from kernel_gym.envs.adapters.verifiers import KernelChat

    with Broken(DEVICE) as executor:
        (output,) = play(KernelChat(executor, TASK, max_turns=1), ["x("])
    assert output["error"]["error"] == "InfraError"
    assert output["reward"] == 0.0
