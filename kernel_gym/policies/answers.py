"""What the answer of a chat server says: the reply, what it took, and what was odd about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kernel_gym.policies.endpoint import message_in

_MOST_TOKENS = 2**40


class UnusableAnswer(ValueError):
    """An answer with status 200 that holds no reply; the message says what it is instead."""


@dataclass(frozen=True)
class Answer:
    """A reply.

    Attributes:
        text: What the model says to its user; what it thought before is not in it.
        read: Tokens read, as far as the server counts them.
        written: Tokens written, thoughts among them.
        problem: Why the reply may not be what was asked for, as a sentence; "" if nothing is odd.
    """

    text: str
    read: int
    written: int
    problem: str


def read_answer(data: Any) -> Answer:
    """Reads an answer of `POST /chat/completions`.

    Args:
        data: Its JSON, or its text where it was none.

    Returns:
        The reply, which may be empty: then `problem` says why.

    Raises:
        UnusableAnswer: It holds no reply.
    """
    if not isinstance(data, dict):
        raise UnusableAnswer(f"an answer that is no JSON object: {message_in(data)}")
    choices = data.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise UnusableAnswer(f"an answer without choices: {message_in(data)}")
    text = _text(message.get("content"))
    usage = data.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    return Answer(
        text,
        _tokens(counts.get("prompt_tokens")),
        _tokens(counts.get("completion_tokens")),
        _problem(text, message, choice.get("finish_reason")),
    )


def _text(content: Any) -> str:
    """The words in a content, which servers send as text, as a list of parts, or not at all."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise UnusableAnswer(f"content of the type {type(content).__name__}")
    return "".join(_part(part) for part in content)


def _part(part: Any) -> str:
    """The words of a part; pictures, thoughts and the like have none."""
    if isinstance(part, str):
        return part
    text = part.get("text") if isinstance(part, dict) else None
    thought = isinstance(part, dict) and part.get("type") in ("thinking", "reasoning")
    return text if isinstance(text, str) and not thought else ""


def _problem(text: str, message: dict[str, Any], ended: Any) -> str:
    """What is odd about a reply, as a sentence."""
    if ended == "length":
        return "The reply was cut off: it reached its limit of tokens."
    if ended == "content_filter":
        return "The server's content filter ended the reply."
    if text.strip():
        return ""
    if calls := message.get("tool_calls"):
        return f"The reply calls tools ({_names(calls)}); there are none: answer in text."
    if isinstance(refusal := message.get("refusal"), str) and refusal:
        return f"The model refused: {message_in(refusal)}"
    if message.get("reasoning_content") or message.get("reasoning"):
        return "The reply has thoughts and no answer."
    return "The reply is empty."


def _names(calls: Any) -> str:
    """The names of the tools that were called."""
    functions = (
        [call.get("function") for call in calls if isinstance(call, dict)]
        if (isinstance(calls, list))
        else []
    )
    names = [str(f.get("name"))[:40] for f in functions[:5] if isinstance(f, dict)]
    return " ".join(", ".join(names).split()) or "without a name"


def _tokens(count: Any) -> int:
    """A count of tokens; 0 where the server gives none that can be."""
    fine = isinstance(count, int) and not isinstance(count, bool) and 0 <= count < _MOST_TOKENS
    return count if fine else 0
