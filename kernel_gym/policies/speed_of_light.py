"""A stop rule: an episode ends when its best kernel is close to the speed of light.

The speed of light of a workload is its roofline and the cost of one launch: no kernel is faster.
Turns that could gain only a few percent cost as much as turns that could gain a factor.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future

from kernel_gym.episodes.episode import Episode
from kernel_gym.policies.base import (
    Conversation,
    Policy,
    PolicyError,
    Response,
    Run,
    Stop,
    answered,
)
from kernel_gym.policies.options import Options
from kernel_gym.policies.pace import in_order
from kernel_gym.policies.registry import make_policy, register_policy
from kernel_gym.records import Evaluation, WorkloadResult
from kernel_gym.tasks.workload import Split

ENOUGH = 0.9
"""An episode ends at this share of the speed of light on every train workload."""


class UntilLight(Policy):
    """Plays another policy, and ends an episode whose best kernel is close to the speed of light.

    Args:
        policy: The other policy.
        enough: The share of the speed of light that ends an episode, above 0 and at most 1.

    Raises:
        PolicyError: The share is out of range.
    """

    def __init__(self, policy: Policy, enough: float = ENOUGH) -> None:
        if not 0.0 < enough <= 1.0:
            raise PolicyError(f"share of the speed of light: found {enough}, expected 0 to 1")
        self.policy, self.enough = policy, enough
        self.prompt, self.sampling = policy.prompt, policy.sampling
        self.streams = policy.streams

    def begin(self, run: Run) -> None:
        """Begins the other policy."""
        self.policy.begin(run)

    def reply(self, conversations: Sequence[Conversation], /) -> list[Response]:
        """Asks the other policy for the episodes that are not close enough."""
        return in_order(self.request(conversations))

    def request(self, conversations: Sequence[Conversation], /) -> list[Future[Response]]:
        """As :meth:`reply`, through the other policy's :meth:`request`."""
        shares = [self._share(chat.episode) for chat in conversations]
        going = [c for c, share in zip(conversations, shares, strict=True) if share < self.enough]
        replies = iter(self.policy.request(going) if going else [])
        return [
            next(replies)
            if share < self.enough
            else answered(Stop(f"the best kernel runs at {share:.0%} of the speed of light"))
            for share in shares
        ]

    def _share(self, episode: Episode) -> float:
        best = episode.best
        return share_of_light(best.evaluation) if best else 0.0


def share_of_light(evaluation: Evaluation) -> float:
    """The share of the speed of light on the train workload that is furthest from it.

    Args:
        evaluation: A record.

    Returns:
        From 0 to 1; 0 if a train workload was not timed or has no roofline.
    """
    results = evaluation.by_split(Split.TRAIN)
    return min((_share(result) for result in results), default=0.0)


def _share(result: WorkloadResult) -> float:
    """Roofline and one launch, over the kernel's time; without a modelled launch the roofline."""
    if not result.candidate_seconds or not result.roofline_seconds:
        return 0.0
    launch = (result.launch_seconds or 0.0) / max(1, result.launches or 1)
    return min(1.0, (result.roofline_seconds + launch) / result.candidate_seconds)


@register_policy("until-light")
def until_light(policy: str, options: Options) -> UntilLight:
    """The rule over another policy.

    Args:
        policy: The name of a policy, or a share and the name, such as `0.8:search`.
        options: Options of the other policy.

    Raises:
        PolicyError: The policy is unknown or the share is out of range.
    """
    share, _, name = policy.partition(":")
    try:
        enough = float(share)
    except ValueError:
        return UntilLight(make_policy(policy, options))
    return UntilLight(make_policy(name, options), enough)
