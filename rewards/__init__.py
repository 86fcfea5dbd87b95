"""From an evaluation to a number.

A reward is a callable from an :class:`~kernel_gym.records.Evaluation` to a :class:`RewardResult`.
The terms it is made of are pure functions in :mod:`kernel_gym.rewards.terms`; named combinations of
them are registered in :mod:`kernel_gym.rewards.presets`.
"""

from kernel_gym.rewards.presets import get_reward, register_reward, reward_names
from kernel_gym.rewards.reward import Reward, RewardResult, UnknownReward

__all__ = [
    "Reward",
    "RewardResult",
    "UnknownReward",
    "get_reward",
    "register_reward",
    "reward_names",
]
