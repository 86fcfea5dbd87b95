"""verl 0.9: a reward function for single replies, and a tool for episodes of several turns.

Reward function, in the configuration of the trainer:

    reward.custom_reward_function.path=pkg://kernel_gym.envs.adapters.verl
    reward.custom_reward_function.name=compute_score

Tool, in the file of `actor_rollout_ref.rollout.multi_turn.tool_config_path`: the class
`kernel_gym.envs.adapters.verl.KernelTool`. Its step rewards are increments. The datasets of
`kernel-gym tasks export --format verl` name the task in `reward_model.ground_truth` and in
`extra_info.tools_kwargs.submit_kernel.create_kwargs`.

verl takes numbers only. If the machine fails in every try, both raise `MaskedEvaluation`.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from verl.tools.base_tool import BaseTool
from verl.tools.schemas import OpenAIFunctionToolSchema, ToolResponse

from kernel_gym.envs.adapters.scoring import RowColumns, facts, process_sessions, score
from kernel_gym.envs.sessions import Sessions
from kernel_gym.episodes.reply import extract_source
from kernel_gym.episodes.session import EpisodeSession, MaskedEvaluation

SCHEMA = {
    "type": "function",
    "function": {
        "name": "submit_kernel",
        "description": "Compiles a kernel, checks it against the reference and times it.",
        "parameters": {
            "type": "object",
            "properties": {
                "source": {"type": "string", "description": "The whole source of the kernel."}
            },
            "required": ["source"],
        },
    },
}


async def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: RowColumns | None = None,
    **_: object,
) -> dict[str, object]:
    """The reward of one reply.

    Args:
        data_source: The name of the dataset.
        solution_str: The reply.
        ground_truth: The task id.
        extra_info: The columns of the row. `seed` fixes unseen workloads and data.

    Returns:
        `score`, and numbers to log.

    Raises:
        MaskedEvaluation: The machine failed in every try.
        UnknownName: There is no such task; the message has near matches.
    """
    columns: RowColumns = extra_info or {}
    step = await score(solution_str, ground_truth, columns.get("seed"))
    return {"score": step.number(), **facts(step)}


class KernelTool(BaseTool):
    """The tool `submit_kernel`; each instance of it is an episode.

    Args:
        config: `max_turns`, the submissions of an episode (default 3).
        tool_schema: The schema that the model reads; by default :data:`SCHEMA`.
        sessions: Begins the episodes; by default those of the process.
    """

    def __init__(
        self, config: dict[str, Any], tool_schema: object = None, sessions: Sessions | None = None
    ) -> None:
        schema = tool_schema or OpenAIFunctionToolSchema.model_validate(SCHEMA)
        super().__init__(config, schema)
        self._sessions = sessions or process_sessions(int(config.get("max_turns", 3)))
        self._episodes: dict[str, EpisodeSession] = {}

    async def create(
        self, instance_id: str | None = None, task: str = "", seed: int | None = None, **_: object
    ) -> tuple[str, ToolResponse]:
        """Begins an episode; `task` and `seed` come from `create_kwargs` of the row."""
        name = instance_id or uuid4().hex
        self._episodes[name] = self._sessions.begin(task or None, seed)
        return name, ToolResponse()

    async def execute(
        self, instance_id: str, parameters: dict[str, object], **_: object
    ) -> tuple[ToolResponse, float, dict[str, object]]:
        """Evaluates a submission; the reward is the increment."""
        session = self._episodes[instance_id]
        if session.over:
            return ToolResponse(text="The episode is over: no submissions are left."), 0.0, {}
        source = extract_source(str(parameters.get("source", "")), session.task)
        step = await session.submit_async(source)
        return ToolResponse(text=step.feedback), step.number(), facts(step)

    async def calc_reward(self, instance_id: str, **_: object) -> float:
        """The reward of the episode."""
        reward = self._episodes[instance_id].final_reward()
        if reward is None:
            raise MaskedEvaluation("the machine failed in every turn: leave this rollout out")
        return reward

    async def release(self, instance_id: str, **_: object) -> None:
        """Forgets the episode."""
        self._episodes.pop(instance_id, None)
