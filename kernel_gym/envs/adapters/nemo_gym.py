"""NeMo Gym 0.4: a resources server whose `/verify` evaluates the last message of a response.

Each row of the dataset has `responses_create_params`, and the task id as `task`. It needs Python
3.12 and `nemo-gym`; the server is started as NeMo Gym starts others, with this module as its app.

A rollout is one reply. `/verify` answers a number. If the machine fails in every try, it answers
503 with `Retry-After`, and NeMo Gym counts the rollout as failed.
"""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict

from kernel_gym.envs.adapters.scoring import facts, score
from kernel_gym.tasks.names import UnknownName

try:
    from fastapi import HTTPException
    from nemo_gym.base_resources_server import (
        BaseResourcesServerConfig,
        BaseVerifyRequest,
        BaseVerifyResponse,
        SimpleResourcesServer,
    )
except ModuleNotFoundError as error:
    if __name__ != "__main__":
        raise
    raise SystemExit(f"{error.name} is missing; pip install nemo-gym") from None

RETRY_AFTER = 30
"""Seconds after which a masked evaluation may be asked for again."""


class KernelVerifyRequest(BaseVerifyRequest):
    """A response to judge."""

    task: str
    """The task id."""
    seed: int | None = None
    """Seed of unseen workloads and data; by default the system's randomness."""


class KernelVerifyResponse(BaseVerifyResponse):
    """A judged response, with numbers to log."""

    model_config = ConfigDict(extra="allow")
    feedback: str = ""


class KernelServer(SimpleResourcesServer):
    """Judges responses."""

    config: BaseResourcesServerConfig

    async def verify(self, body: KernelVerifyRequest) -> KernelVerifyResponse:
        """The reward of the kernel in the last message of a response."""
        try:
            step = await score(last_text(body.response.output), body.task, body.seed)
        except UnknownName as error:
            raise HTTPException(404, str(error)) from None
        if step.reward is None:
            headers = {"Retry-After": str(RETRY_AFTER)}
            raise HTTPException(503, "the machine failed; ask again", headers=headers)
        return KernelVerifyResponse(
            **body.model_dump(), reward=step.number(), feedback=step.feedback, **facts(step)
        )


def last_text(output: Any) -> str:
    """The text of the last message in the output of a response; "" if there is none."""
    messages = [item for item in output if item.type == "message" and item.role == "assistant"]
    if not messages:
        return ""
    return "".join(part.text for part in messages[-1].content if part.type == "output_text")


if __name__ == "__main__":
    KernelServer.run_webserver()
