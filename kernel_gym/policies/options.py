"""Options of policies that draw replies from a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from kernel_gym.policies.base import PolicyError
from kernel_gym.storage.run_records import Sampling

_SAMPLING = ("max_tokens", "temperature", "top_p")


@dataclass(frozen=True)
class Options:
    """Settings of a user; None keeps the policy's default.

    Attributes:
        max_tokens: Longest reply, in tokens.
        temperature: Sampling temperature; 0 takes the most likely token.
        top_p: Probability mass of nucleus sampling, from 0 to 1.
        extra: Additional keys of a request, as the server documents them.
        parallel: Most requests at the same time.
        per_minute: Most requests per minute.
        request_timeout: Most seconds between a request and its answer.
        prompt_price: US dollars per million tokens read.
        completion_price: US dollars per million tokens written.
    """

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    extra: Mapping[str, object] | None = None
    parallel: int | None = None
    per_minute: float | None = None
    request_timeout: float | None = None
    prompt_price: float | None = None
    completion_price: float | None = None

    def given(self) -> dict[str, object]:
        """The options that are set, by name."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    def over(self, default: Sampling) -> Sampling:
        """A policy's default sampling, with the options that are set in its place."""
        return default.model_copy(update=self.given())

    def only_sampling(self, policy: str) -> dict[str, Any]:
        """The options that are set, for a policy that sends no requests to a server.

        Raises:
            PolicyError: An option for requests is set.
        """
        return _only(self.given(), _SAMPLING, policy)

    def none(self, policy: str) -> None:
        """Checks that no option is set, for a policy that draws no replies.

        Raises:
            PolicyError: An option is set.
        """
        _only(self.given(), (), policy)


def _only(given: dict[str, object], known: tuple[str, ...], policy: str) -> dict[str, object]:
    for name in given:
        if name not in known:
            takes = f"it takes {', '.join(known)}" if known else "it draws no replies"
            raise PolicyError(f"policy {policy!r} has no option {name!r}; {takes}")
    return given
