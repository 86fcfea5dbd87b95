"""Returns of a multi-turn episode: the discounted sum of a turn's own and later rewards."""

from __future__ import annotations

from collections.abc import Sequence


def returns(rewards: Sequence[float | None], gamma: float) -> list[float | None]:
    """Returns the discounted sum of each turn's own and later rewards.

    A masked turn has no return and adds nothing to the returns of earlier turns. It still counts
    for the discount of the turns after it.

    Args:
        rewards: The reward of each turn in order; None for a masked turn.
        gamma: The discount per turn. With 0 the return of a turn is its reward.

    Returns:
        One return per turn.

    Example:
        >>> returns([0.0, 1.0, 2.0], gamma=0.5)
        [1.0, 2.0, 2.0]
        >>> returns([1.0, None, 4.0], gamma=0.5)
        [2.0, None, 4.0]
    """
    backwards: list[float | None] = []
    ahead = 0.0
    for reward in reversed(rewards):
        ahead = (reward or 0.0) + gamma * ahead
        backwards.append(None if reward is None else ahead)
    return backwards[::-1]
