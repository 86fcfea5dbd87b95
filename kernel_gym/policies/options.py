"""How replies are asked for: what a user may say about it, and what a policy makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from kernel_gym.policies.base import PolicyError
from kernel_gym.storage.run_records import Sampling

_SAMPLING = ("max_tokens", "temperature", "top_p")


@dataclass(frozen=True)
class Options:
    """What is asked for; None leaves it to the policy.

    Attributes:
        max_tokens: Length of a reply, at most.
        temperature: 0 takes the likeliest token.
        top_p: Tokens are drawn from the likeliest whose chances add up to this.
        extra: Further keys of a request, as a server documents them.
        parallel: Requests at a time.
        per_minute: Requests a minute, at most.
        prompt_price: US dollars a million tokens read.
        completion_price: US dollars a million tokens written.
    """

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    extra: Mapping[str, Any] | None = None
    parallel: int | None = None
    per_minute: float | None = None
    prompt_price: float | None = None
    completion_price: float | None = None

    def given(self) -> dict[str, Any]:
        """The options that are not left to the policy."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    def over(self, usual: Sampling) -> Sampling:
        """The usual sampling with what is asked for in its place."""
        return usual.model_copy(update=self.given())

    def only_sampling(self, policy: str) -> dict[str, Any]:
        """The options of a policy that sends no requests.

        Raises:
            PolicyError: One of them is for requests.
        """
        return _only(self.given(), _SAMPLING, policy)

    def none(self, policy: str) -> None:
        """Refuses every option, for a policy that draws no replies.

        Raises:
            PolicyError: There is one.
        """
        _only(self.given(), (), policy)


def _only(given: dict[str, Any], known: tuple[str, ...], policy: str) -> dict[str, Any]:
    for name in given:
        if name not in known:
            takes = f"it takes {', '.join(known)}" if known else "it draws no replies"
            raise PolicyError(f"policy {policy!r} has no option {name!r}; {takes}")
    return given
