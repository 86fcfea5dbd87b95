"""Tinker (cookbook 0.6): the dataset for its trainer, and an episode without a model.

from tinker_cookbook.rl import train
asyncio.run(train.main(train.Config(
    recipe_name="kernel-gym", model_name=MODEL, dataset_builder=dataset(MODEL),
    learning_rate=4e-5, max_tokens=8192, log_path="runs/tinker", rollout_error_tolerance=True)))

KERNEL_GYM_DEVICE=sim:gfx942 python examples/adapters/with_tinker.py
"""

import asyncio

from kernel_gym.tasks import get_task

try:
    from kernel_gym.envs.adapters.tinker import KernelMessageEnv
    from kernel_gym.envs.adapters.tinker_dataset import KernelDatasetBuilder
except ImportError as error:
    raise SystemExit(f"{error.name} is missing: pip install 'tinker-cookbook>=0.6,<0.7'") from None

TASK = "triton2triton/softmax"


def dataset(model: str) -> KernelDatasetBuilder:
    return KernelDatasetBuilder(model_name_for_tokenizer=model, tasks=(TASK,), steps=100)


async def episode() -> None:
    env = KernelMessageEnv(TASK, max_turns=1, seed=0)
    prompt = (await env.initial_observation())[0]["content"]
    print(f"prompt of {len(prompt)} characters")
    step = await env.step({"role": "assistant", "content": get_task(TASK).start_source})
    print(f"reward {step.reward:.3f}, done {step.episode_done}")


if __name__ == "__main__":
    asyncio.run(episode())
