"""Parses the answer of a chat server: the reply, its tokens, and what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gym.policies.endpoint import message_in

CUT_OFF = "The reply was cut off: it reached its limit of tokens."
MAX_TOKENS = 2**40


class UnusableAnswer(ValueError):
    """An answer with status 200 that has no reply; the message says what it is instead."""


@dataclass(frozen=True)
class EndpointAnswer:
    """A parsed answer.

    Attributes:
        text: The reply, without the model's reasoning.
        read: Number of tokens read; 0 if the server does not count them.
        written: Number of tokens written, including reasoning; 0 if the server does not count them.
        problem: A sentence on what is wrong with the reply; "" if nothing is.
    """

    text: str
    read: int
    written: int
    problem: str


def read_answer(data: object) -> EndpointAnswer:
    """Reads an answer of `POST /chat/completions`.

    Args:
        data: The JSON of the answer, or its text if it is not JSON.

    Returns:
        The answer. If its text is empty, `problem` says why.

    Raises:
        UnusableAnswer: The answer has no reply.
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
    return EndpointAnswer(
        text,
        _tokens(counts.get("prompt_tokens")),
        _tokens(counts.get("completion_tokens")),
        _problem(text, message, choice.get("finish_reason")),
    )


def _text(content: object) -> str:
    """The text of a content field, which may be a string, a list of parts, or absent."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise UnusableAnswer(f"content of the type {type(content).__name__}")
    return "".join(_part(part) for part in content)


def _part(part: object) -> str:
    """The text of a part; "" for images, reasoning and other kinds."""
    if isinstance(part, str):
        return part
    text = part.get("text") if isinstance(part, dict) else None
    thought = isinstance(part, dict) and part.get("type") in ("thinking", "reasoning")
    return text if isinstance(text, str) and not thought else ""


def _problem(text: str, message: dict[str, object], ended: object) -> str:
    """A sentence on what is wrong with a reply; "" if nothing is."""
    if ended == "length":
        return CUT_OFF
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


def _names(calls: object) -> str:
    """The names of the tools that were called."""
    listed = calls if isinstance(calls, list) else []
    functions = [call.get("function") for call in listed if isinstance(call, dict)]
    names = [str(f.get("name"))[:40] for f in functions[:5] if isinstance(f, dict)]
    return " ".join(", ".join(names).split()) or "without a name"


def _tokens(count: object) -> int:
    """A count of tokens; 0 if the server sends none that is plausible."""
    if not isinstance(count, int) or isinstance(count, bool):
        return 0
    return count if 0 <= count < MAX_TOKENS else 0
