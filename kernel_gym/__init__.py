"""Reinforcement-learning environments for GPU-kernel optimisation on AMD GPUs.

Importing the package registers its Gymnasium environments by name. It loads neither PyTorch nor a
device: the public names, which are in `__init__.pyi`, are imported on first use (PEP 562).

Example:
    >>> import kernel_gym
    >>> task = kernel_gym.get_task("triton2triton/softmax")
    >>> evaluation = kernel_gym.evaluate(task, "not a kernel", device="sim:gfx942", seed=0)
    >>> str(evaluation.outcome)
    'compile_error'
    >>> kernel_gym.get_reward("kernel-opt")(evaluation).value
    0.02
"""

import gymnasium

from kernel_gym.extras import attach

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = attach(__name__, __file__)

# A GPU's times differ from run to run, so the registration says that the environments are not
# deterministic. On the simulator equal seeds give equal observations, rewards and infos.
gymnasium.register(
    id="KernelOpt-v0",
    entry_point="kernel_gym.envs:KernelOptEnv",
    vector_entry_point="kernel_gym.envs:KernelOptVectorEnv",
    nondeterministic=True,
)
gymnasium.register(
    id="KernelTune-v0",
    entry_point="kernel_gym.envs:KernelTuneEnv",
    vector_entry_point="kernel_gym.envs:KernelTuneVectorEnv",
    nondeterministic=True,
)
