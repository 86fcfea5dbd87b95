"""verl 0.9: the reward function and the tool, played without a model.

    kernel-gym tasks export --format verl --suite quickstart --out prompts.parquet
    python -m verl.trainer.main_ppo data.train_files=prompts.parquet \
        reward.custom_reward_function.path=pkg://kernel_gym.envs.adapters.verl \
        reward.custom_reward_function.name=compute_score
    # or, for several turns:
    #   actor_rollout_ref.rollout.multi_turn.enable=True
    #   actor_rollout_ref.rollout.multi_turn.tool_config_path=examples/adapters/verl_tool.yaml

    KERNEL_GYM_DEVICE=sim:gfx942 python examples/adapters/with_verl.py
"""

import asyncio
from pathlib import Path

from kernel_gym.tasks import get_task

try:
    from verl.tools.tool_registry import initialize_tools_from_config

    from kernel_gym.envs.adapters.verl import compute_score
except ImportError as error:
    raise SystemExit(f"{error.name} is missing: pip install 'verl>=0.9,<0.10'") from None

TASK = "triton2triton/softmax"
REPLY = get_task(TASK).start_source


async def episode() -> None:
    answer = await compute_score("kernel-gym", REPLY, TASK, {"seed": 0})
    print(f"reward {answer['score']:.3f}")
    (tool,) = initialize_tools_from_config(Path(__file__).with_name("verl_tool.yaml"))
    name, _ = await tool.create(task=TASK, seed=0)
    _, increment, _ = await tool.execute(name, {"source": REPLY})
    print(f"tool: increment {increment:.3f}, episode {await tool.calc_reward(name):.3f}")
    await tool.release(name)


if __name__ == "__main__":
    asyncio.run(episode())
