"""What every policy promises: conversations in, replies out, many at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kernel_gym.episodes.chat import Conversation, Message
from kernel_gym.episodes.episode import Episode
from kernel_gym.policies.names import PolicyError

__all__ = [
    "Conversation",
    "Message",
    "Policy",
    "PolicyError",
    "Reply",
    "Response",
    "Scripted",
    "Stop",
]


@dataclass(frozen=True)
class Reply:
    """What a policy wrote.

    Attributes:
        text: All of it.
        source: The submission in it.
        prompt_tokens: Tokens read, where they are counted.
        completion_tokens: Tokens written.
        cost: US dollars, where they are charged.
        problem: Why the reply may not be what was asked for, as a sentence: it was cut off, or
            empty. The policy reads it with the feedback.
    """

    text: str
    source: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    problem: str = ""


@dataclass(frozen=True)
class Stop:
    """Ends an episode for a reason that is recorded with it."""

    reason: str


Response = Reply | Stop | None
"""What a policy does in a turn; None ends the episode with nothing more to say."""


class Policy(Protocol):
    """Anything that writes kernels."""

    def reply(self, conversations: Sequence[Conversation], /) -> list[Response]:
        """Answers many conversations.

        Args:
            conversations: Any number of them, in any order.

        Returns:
            One reply a conversation, in their order; a :class:`Stop` or None ends its episode.
        """
        ...


class Scripted(ABC):
    """A policy that looks at the task and the turns, not at the words."""

    def reply(self, conversations: Sequence[Conversation]) -> list[Response]:
        """One submission after another; each is the whole reply."""
        sources = [self.submit(conversation.episode) for conversation in conversations]
        return [None if source is None else Reply(source, source) for source in sources]

    @abstractmethod
    def submit(self, episode: Episode) -> str | None:
        """The next submission of an episode, or None to end it."""
