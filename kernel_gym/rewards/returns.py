"""Returns of a multi-turn episode: what a turn is worth, given the turns after it."""

from __future__ import annotations

from collections.abc import Sequence


def returns(rewards: Sequence[float | None], gamma: float) -> list[float | None]:
    """The discounted sum of each turn's own and later rewards.

    A masked turn has no return of its own and adds nothing to those of earlier ones, but time
    passes in it: what comes after is discounted as if it had been played.

    Args:
        rewards: The reward of each turn in order; None for a masked one.
        gamma: What the reward of the next turn is worth now: 0 looks no further than the turn.

    Returns:
        One return a turn.

    Example:
        >>> returns([0.0, 1.0, 2.0], gamma=0.5)
        [1.0, 2.0, 2.0]
        >>> returns([1.0, None, 4.0], gamma=0.5)
        [2.0, None, 4.0]
    """
    found: list[float | None] = []
    ahead = 0.0
    for reward in reversed(rewards):
        ahead = (reward or 0.0) + gamma * ahead
        found.append(None if reward is None else ahead)
    return found[::-1]
