"""A server with OpenAI's chat completions as a policy: vLLM, SGLang, llama.cpp and others."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any

from kernel_gym.episodes.edits import submission
from kernel_gym.episodes.episode import Episode
from kernel_gym.policies.answers import Answer, UnusableAnswer, read_answer
from kernel_gym.policies.base import (
    Conversation,
    Message,
    PolicyError,
    Reply,
    Response,
    Stop,
)
from kernel_gym.policies.endpoint import KEY, Endpoint, message_in
from kernel_gym.policies.options import Options
from kernel_gym.policies.pace import side_by_side
from kernel_gym.storage.run_records import Sampling

log = logging.getLogger(__name__)
FOR_ALL = (401, 402, 403, 404)
"""Statuses that are not about one chat: the key, the account, the model or the address."""
ANSWERS = 3
"""Answers that cannot be used after which a turn is given up."""
PARALLEL = 16
_PROBE = Message(role="user", content="Answer with one word.")
_LIMITS = ("max_tokens", "max_completion_tokens")
"""What servers call the longest reply; newer models of OpenAI refuse the first name."""


class OpenAI:
    """Writes through `POST URL/chat/completions`.

    What goes wrong with one chat ends that chat alone. An answer that cannot be used is asked for
    again and then scored as a submission that failed. A chat that the server refuses, as it does
    when the context is full, ends its episode. Only where the server refuses a chat of four words
    as well is something wrong for all of them.

    Args:
        url: Up to and with `/v1`; `#NAME` behind it names the model, else it is the first served.
        sampling: How replies are drawn, what a token costs, and how requests are sent.
        **waiting: As for :class:`~kernel_gym.policies.endpoint.Endpoint`.

    Raises:
        PolicyError: urllib3 is missing, the address is none, or the server does not answer.
    """

    def __init__(self, url: str, sampling: Sampling | None = None, **waiting: Any) -> None:
        address, _, model = url.partition("#")
        if not address.startswith(("http://", "https://")):
            raise PolicyError(
                f"policy 'openai': found {address!r}, expected a URL such as http://HOST:8000/v1"
            )
        self.sampling = sampling or Sampling()
        self._parallel = self.sampling.parallel or PARALLEL
        self._endpoint = Endpoint(address, self._parallel, self.sampling.per_minute, **waiting)
        self._limit, self._works, self._probing = _LIMITS[0], False, threading.Lock()
        self.model = model or self._first_served()

    @classmethod
    def of(cls, url: str, options: Options) -> OpenAI:
        """The policy with what was asked for in place of the usual."""
        return cls(url, options.over(Sampling()))

    def reply(self, conversations: Sequence[Conversation]) -> list[Response]:
        """Answers all, side by side.

        Raises:
            PolicyError: Something is wrong for all chats, or the server is away for too long.
        """
        return side_by_side(self._answer, conversations, self._parallel)

    def _answer(self, conversation: Conversation) -> Reply | Stop:
        """The reply to one chat, or why it has none."""
        why = ""
        for _ in range(ANSWERS):
            status, data = self._ask(conversation.messages)
            if status != 200:
                return self._refused(conversation.episode, status, data)
            try:
                found = read_answer(data)
            except UnusableAnswer as error:
                why = str(error)
            else:
                self._works = True
                return self._reply(conversation.episode, found)
        self._require_works(why)
        log.warning("%s: %s", conversation.episode.task.id, why)
        return self._reply(conversation.episode, Answer("", 0, 0, f"The server gave {why}"))

    def _ask(self, messages: Sequence[Message]) -> tuple[int, Any]:
        """Sends a chat, once more where the server wants the limit by its other name."""
        limit = self._limit
        status, data = self._endpoint.send("POST", "/chat/completions", self._body(messages, limit))
        other = _LIMITS[1 - _LIMITS.index(limit)]
        if status in (400, 422) and limit in (said := message_in(data)) and other in said:
            self._limit = other
            body = self._body(messages, other)
            status, data = self._endpoint.send("POST", "/chat/completions", body)
        return status, data

    def _body(self, messages: Sequence[Message], limit: str) -> dict[str, Any]:
        sampling = self.sampling
        top_p = {} if sampling.top_p == 1.0 else {"top_p": sampling.top_p}
        return {
            "model": self.model,
            "messages": list(messages),
            limit: sampling.max_tokens,
            "temperature": sampling.temperature,
            **top_p,
            **sampling.extra,
        }

    def _refused(self, episode: Episode, status: int, data: Any) -> Stop:
        """Ends the episode of a chat that the server refuses; raises where it refuses all."""
        why = f"status {status}: {message_in(data)}" if status else f"no answer: {data}"
        if status in FOR_ALL:
            hint = f"; {KEY} holds its key" if status in (401, 403) else ""
            raise self._endpoint.error(f"{why}{hint}")
        self._require_works(why)
        log.warning("%s ends here: %s", episode.task.id, why)
        return Stop(f"the server did not answer the chat: {why}")

    def _require_works(self, why: str) -> None:
        """Raises where not even a short chat has an answer, which is then not about one chat."""
        with self._probing:
            if self._works:
                return
            status, data = self._ask([_PROBE])
            try:
                if status == 200:
                    read_answer(data)
                    self._works = True
            except UnusableAnswer:
                pass
        if not self._works:
            raise self._endpoint.error(why)

    def _reply(self, episode: Episode, found: Answer) -> Reply:
        source = submission(episode, found.text)
        if not source.strip():
            source = f"{'//' if episode.task.language == 'hip' else '#'} {found.problem}\n"
        prices = self.sampling
        cost = found.read * prices.prompt_price + found.written * prices.completion_price
        return Reply(found.text, source, found.read, found.written, cost / 1e6, found.problem)

    def _first_served(self) -> str:
        status, data = self._endpoint.send("GET", "/models")
        if status != 200:
            hint = f"; {KEY} holds its key" if status in (401, 403) else ""
            raise self._endpoint.error(f"status {status}: {message_in(data)}{hint}")
        try:
            return str(data["data"][0]["id"])
        except (KeyError, IndexError, TypeError) as error:
            raise self._endpoint.error("it serves no model; name one, URL#NAME") from error
