"""SkyRL (skyrl-gym 0.4): the environment, played without a model.

kernel-gym tasks export --format skyrl --suite quickstart --out prompts.parquet
# in the entry point of your training, before it starts: register()
# and in its configuration: data.train_data=['prompts.parquet'] environment.env_class=kernel_gym

KERNEL_GYM_DEVICE=sim:gfx942 python examples/adapters/with_skyrl.py
"""

from kernel_gym.tasks import get_task

try:
    import skyrl_gym

    from kernel_gym.envs.adapters.skyrl import NAME, register
except ImportError as error:
    raise SystemExit(f"{error.name} is missing: pip install 'skyrl-gym>=0.4,<0.5'") from None

TASK = "triton2triton/softmax"


def episode() -> None:
    register()
    env = skyrl_gym.make(NAME, env_config={"max_turns": 1}, extras={"task": TASK, "seed": 0})
    env.init([{"role": "user", "content": "the prompt of the row"}])
    step = env.step(get_task(TASK).start_source)
    print(f"reward {step['reward']:.3f}, done {step['done']}, {env.get_metrics()}")


if __name__ == "__main__":
    episode()
