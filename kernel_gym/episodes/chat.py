"""Chats: the messages in which a policy sees an episode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from kernel_gym.episodes.episode import Episode


class Message(TypedDict):
    """One message of a chat, as chat templates and chat endpoints take it."""

    role: str
    content: str


@dataclass(frozen=True)
class Conversation:
    """What a policy answers.

    Attributes:
        episode: The task and the turns so far; scripted policies read nothing else.
        messages: The same as a chat, the last message the user's; models read nothing else.
    """

    episode: Episode
    messages: tuple[Message, ...] = ()
