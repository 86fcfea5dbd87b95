"""Named rewards. To add one, decorate a function of an evaluation with :func:`register_reward`."""

from __future__ import annotations

from collections.abc import Callable

from kernel_gym.records import Evaluation, Outcome
from kernel_gym.rewards import terms
from kernel_gym.rewards.reward import Reward, RewardResult, UnknownReward

DEFAULT_REWARD = "kernel-opt"
_REWARDS: dict[str, Reward] = {}


def register_reward(name: str) -> Callable[[Reward], Reward]:
    """Makes a reward available by name.

    Args:
        name: The name it is asked for by.

    Returns:
        A decorator that registers the reward and returns it unchanged.

    Raises:
        ValueError: The name is taken.
    """

    def register(reward: Reward) -> Reward:
        if name in _REWARDS:
            raise ValueError(f"reward {name!r} is registered already")
        _REWARDS[name] = reward
        return reward

    return register


def get_reward(name: str = DEFAULT_REWARD) -> Reward:
    """The reward of that name.

    Args:
        name: One of :func:`reward_names`.

    Returns:
        The reward.

    Raises:
        UnknownReward: Nobody registered it; the message lists near matches.
    """
    if name not in _REWARDS:
        raise UnknownReward(name, _REWARDS)
    return _REWARDS[name]


def reward_names() -> tuple[str, ...]:
    """The registered names, sorted."""
    return tuple(sorted(_REWARDS))


@register_reward("kernel-opt")
def kernel_opt(evaluation: Evaluation) -> RewardResult:
    """The default: a correctness gate, then half speed and half transfer.

    A submission that is not correct earns the partial credit of :func:`terms.credit`, at most 0.15.
    A correct one earns 0.2 plus 0.8 of `0.5 speed + 0.5 transfer`: 0.6 for a kernel as fast as the
    baseline everywhere, 1.0 for one that is ten times as fast everywhere. Speeds are lower bounds.

    Example:
        >>> from kernel_gym.records import Evaluation
        >>> facts = dict(protocol_version="1", task="triton2triton/softmax", device="sim:gfx942",
        ...              clock="modelled", source_sha256="0" * 64)
        >>> kernel_opt(Evaluation(outcome="compile_error", stage="build", **facts)).value
        0.02
    """
    if evaluation.outcome is Outcome.INFRA:
        return RewardResult(None)
    gate = terms.correct(evaluation)
    credit = terms.credit(evaluation)
    if not gate:
        return RewardResult(credit, {"correct": gate, "credit": credit})
    speed = terms.speed(evaluation)
    transfer = terms.transfer(evaluation)
    value = credit + (1.0 - credit) * max(0.5 * speed + 0.5 * transfer, 0.0)
    return RewardResult(
        value,
        {
            "correct": gate,
            "credit": credit,
            "speed": speed,
            "transfer": transfer,
            "unseen_share": terms.unseen_share(evaluation),
            "retention": terms.retention(evaluation),
        },
    )
