"""Rewards: functions from an evaluation to a number.

A reward is a callable from an :class:`~kernel_gym.records.Evaluation` to a :class:`RewardResult`.
Its terms are pure functions, registered by name in :mod:`kernel_gym.rewards.terms`.
:mod:`kernel_gym.rewards.recipe` combines terms, and :mod:`kernel_gym.rewards.presets` has the named
combinations.
"""

from kernel_gym.rewards.lookup import get_reward
from kernel_gym.rewards.presets import register_reward, reward_names
from kernel_gym.rewards.recipe import Part, Recipe
from kernel_gym.rewards.returns import returns
from kernel_gym.rewards.reward import Context, Reward, RewardError, RewardResult, UnknownReward
from kernel_gym.rewards.terms import term, term_names

__all__ = [
    "Context",
    "Part",
    "Recipe",
    "Reward",
    "RewardError",
    "RewardResult",
    "UnknownReward",
    "get_reward",
    "register_reward",
    "returns",
    "reward_names",
    "term",
    "term_names",
]
