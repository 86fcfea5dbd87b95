"""The interface of policies: conversations in, replies out, many at a time."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kernel_gym.devices import describe
from kernel_gym.episodes.chat import Conversation
from kernel_gym.episodes.episode import ChatMessage, Episode
from kernel_gym.policies.names import PolicyError
from kernel_gym.storage.run_records import ReplyTokens, Sampling

__all__ = [
    "ChatMessage",
    "Conversation",
    "Policy",
    "PolicyError",
    "Reply",
    "Response",
    "Run",
    "Scripted",
    "Stop",
]


@dataclass(frozen=True)
class Reply:
    """One reply of a policy.

    Attributes:
        text: The whole text.
        source: The submission in it.
        prompt_tokens: Number of tokens read, if known.
        completion_tokens: Number of tokens written, if known.
        cost: Cost in US dollars, if known.
        problem: A sentence on what is wrong with the reply, such as that it was cut off; "" if
            nothing is. The policy reads it with the feedback.
        tokens: Its token ids and their log-probabilities, if the policy has them.
    """

    text: str
    source: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    problem: str = ""
    tokens: ReplyTokens | None = None


@dataclass(frozen=True)
class Stop:
    """Ends an episode. The reason is recorded with it."""

    reason: str


Response = Reply | Stop | None
"""The answer of a policy to one conversation; None ends the episode without a reason."""


@dataclass(frozen=True)
class Run:
    """A run that a policy is about to play.

    Attributes:
        folder: The run folder. A policy may keep state there for a resumed run.
        device: The full name of the device that evaluates submissions.
    """

    folder: Path
    device: str

    @property
    def arch(self) -> str:
        """The architecture of the device, such as `gfx942`."""
        return describe(self.device).arch


class Policy(Protocol):
    """Anything that writes kernels. Subclass it and write :meth:`reply`; the rest has defaults.

    Attributes:
        prompt: The kind of prompts that it reads, one of
            :data:`kernel_gym.episodes.conversation.PROMPTS`.
        sampling: How it draws replies, for the record; None if it draws none.
        streams: Whether replies to one call of :meth:`request` come one by one. A policy whose
            replies come together, such as a model in this process, writes :meth:`reply` only.
    """

    prompt: str = "full"
    sampling: Sampling | None = None
    streams: bool = False

    def begin(self, run: Run) -> None:
        """Called once before the first turn of a run, also of a resumed one.

        Args:
            run: The run.
        """
        return None

    @abstractmethod
    def reply(self, conversations: Sequence[Conversation], /) -> list[Response]:
        """Answers many conversations.

        Args:
            conversations: Any number of conversations, in any order.

        Returns:
            One reply for each conversation, in the same order. A :class:`Stop` or None ends the
            episode.
        """
        ...

    def request(self, conversations: Sequence[Conversation], /) -> list[Future[Response]]:
        """Asks for answers to many conversations, without a wait where :attr:`streams` is true.

        Args:
            conversations: As for :meth:`reply`.

        Returns:
            The answer to each conversation, in the same order, as soon as it is there.
        """
        return [answered(response) for response in self.reply(conversations)]


def answered(response: Response) -> Future[Response]:
    """A response that is there, as a future."""
    future: Future[Response] = Future()
    future.set_result(response)
    return future


class Scripted(Policy):
    """A policy that reads the task and the turns of an episode, but no messages."""

    def reply(self, conversations: Sequence[Conversation], /) -> list[Response]:
        """Submits one source for each conversation."""
        sources = [self.submit(conversation.episode) for conversation in conversations]
        return [None if source is None else Reply(source, source) for source in sources]

    @abstractmethod
    def submit(self, episode: Episode) -> str | None:
        """The next submission of an episode; None ends the episode."""
