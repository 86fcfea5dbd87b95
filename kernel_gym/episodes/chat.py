"""Conversations: what a policy is asked to answer."""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gym.episodes.episode import ChatMessage, Episode, Prompt


@dataclass(frozen=True)
class Conversation:
    """One episode that waits for a reply.

    Attributes:
        episode: The task and the turns so far. Scripted policies read this only.
        messages: The same episode as a chat that ends with the user's message. Language models
            read this only.
    """

    episode: Episode
    messages: tuple[ChatMessage, ...] = ()


def converse(episode: Episode, prompt: Prompt) -> Conversation:
    """The conversation of an episode whose first message the prompt writes."""
    return Conversation(episode, episode.messages(prompt))
