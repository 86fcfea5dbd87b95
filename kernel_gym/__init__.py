"""Reinforcement-learning environments for GPU-kernel optimisation on AMD GPUs.

Importing the package registers its environments by name and loads nothing heavy.
"""

import gymnasium

__version__ = "0.1.0"

# A GPU's times differ from run to run, so the registration must allow for it. On the simulator
# equal seeds give equal observations, rewards and infos all the same.
gymnasium.register(
    id="KernelOpt-v0",
    entry_point="kernel_gym.envs.kernel_opt:KernelOptEnv",
    vector_entry_point="kernel_gym.envs.vector:KernelOptVectorEnv",
    nondeterministic=True,
)
gymnasium.register(
    id="KernelTune-v0",
    entry_point="kernel_gym.envs.kernel_tune:KernelTuneEnv",
    nondeterministic=True,
)
