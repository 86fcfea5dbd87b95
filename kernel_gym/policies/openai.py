"""A server with OpenAI's chat completions API as a policy: vLLM, SGLang, llama.cpp and others."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from kernel_gym.episodes.edits import submission
from kernel_gym.episodes.episode import Episode
from kernel_gym.policies.answers import EndpointAnswer, UnusableAnswer, read_answer
from kernel_gym.policies.base import (
    ChatMessage,
    Conversation,
    Policy,
    PolicyError,
    Reply,
    Response,
    Stop,
)
from kernel_gym.policies.endpoint import KEY, Endpoint, failure_text, message_in
from kernel_gym.policies.options import Options
from kernel_gym.policies.pace import DaemonPool, in_order
from kernel_gym.policies.registry import register_policy
from kernel_gym.storage.run_records import Sampling

log = logging.getLogger(__name__)
FOR_ALL = (401, 402, 403, 404)
"""Statuses that concern all chats: the key, the account, the model or the address is wrong."""
ANSWERS = 3
"""Number of unusable answers after which a turn is given up."""
PARALLEL = 16
"""Default number of requests at the same time."""
_PROBE = ChatMessage(role="user", content="Answer with one word.")
_LIMITS = ("max_tokens", "max_completion_tokens")
"""The names that servers use for the longest reply. Newer OpenAI models refuse the first one."""


class OpenAI(Policy):
    """Gets replies from `POST URL/chat/completions`.

    A failure of one chat ends that chat only. An unusable answer is requested again and, after
    :data:`ANSWERS` tries, scored as a failed submission. If the server refuses a chat, for example
    because the context is full, its episode ends. If the server refuses a chat of four words too,
    the failure concerns all chats and is raised.

    Args:
        url: The base URL, which ends in `/v1`. `#NAME` after it names the model; by default it is
            the first model that the server lists.
        sampling: How replies are drawn, the price of tokens, and how requests are sent.
        **waiting: As for :class:`~kernel_gym.policies.endpoint.Endpoint`.

    Raises:
        PolicyError: urllib3 is missing, the URL is malformed, or the server does not answer.
    """

    streams = True

    def __init__(self, url: str, sampling: Sampling | None = None, **waiting: Any) -> None:
        address, _, model = url.partition("#")
        if not address.startswith(("http://", "https://")):
            raise PolicyError(
                f"policy 'openai': found {address!r}, expected a URL such as http://HOST:8000/v1"
            )
        self.sampling = self._sampling = sampling or Sampling()
        self._parallel = self._sampling.parallel or PARALLEL
        self._threads: DaemonPool[Conversation, Response] = DaemonPool(self._answer, self._parallel)
        waiting.setdefault("request_timeout", self._sampling.request_timeout)
        self._endpoint = Endpoint(address, self._parallel, self._sampling.per_minute, **waiting)
        self._limit, self._works, self._probing = _LIMITS[0], False, threading.Lock()
        self.model = model or self._first_served()

    def reply(self, conversations: Sequence[Conversation], /) -> list[Response]:
        """Answers all conversations in parallel.

        Raises:
            PolicyError: A failure concerns all chats, or the server does not answer in time.
        """
        return in_order(self.request(conversations))

    def request(self, conversations: Sequence[Conversation], /) -> list[Future[Response]]:
        """Sends all conversations. Each answer is there as soon as the server gave it."""
        return [self._threads.submit(conversation) for conversation in conversations]

    def _answer(self, conversation: Conversation) -> Reply | Stop:
        """The reply to one chat, or the reason why there is none."""
        why = ""
        for _ in range(ANSWERS):
            status, data = self._ask(conversation.messages)
            if status != 200:
                return self._refused(conversation.episode, status, data)
            try:
                answer = read_answer(data)
            except UnusableAnswer as error:
                why = str(error)
            else:
                self._works = True
                return self._reply(conversation.episode, answer)
        self._require_works(why)
        log.warning("%s: %s", conversation.episode.task.id, why)
        return self._reply(conversation.episode, EndpointAnswer("", 0, 0, f"The server gave {why}"))

    def _ask(self, messages: Sequence[ChatMessage]) -> tuple[int, object]:
        """Sends a chat; tries the other name of the token limit if the server refuses the first."""
        limit = self._limit
        status, data = self._endpoint.send("POST", "/chat/completions", self._body(messages, limit))
        other = _LIMITS[1 - _LIMITS.index(limit)]
        if status in (400, 422) and limit in (message := message_in(data)) and other in message:
            self._limit = other
            body = self._body(messages, other)
            status, data = self._endpoint.send("POST", "/chat/completions", body)
        return status, data

    def _body(self, messages: Sequence[ChatMessage], limit: str) -> dict[str, object]:
        sampling = self._sampling
        top_p = {} if sampling.top_p == 1.0 else {"top_p": sampling.top_p}
        return {
            "model": self.model,
            "messages": list(messages),
            limit: sampling.max_tokens,
            "temperature": sampling.temperature,
            **top_p,
            **sampling.extra,
        }

    def _refused(self, episode: Episode, status: int, data: object) -> Stop:
        """Ends the episode of a chat that the server refuses; raises if it refuses all chats."""
        why = failure_text(status, data)
        if status in FOR_ALL:
            hint = f"; {KEY} holds its key" if status in (401, 403) else ""
            raise self._endpoint.error(f"{why}{hint}")
        self._require_works(why)
        log.warning("%s ends here: %s", episode.task.id, why)
        return Stop(f"the server did not answer the chat: {why}")

    def _require_works(self, why: str) -> None:
        """Raises if not even a short chat gets an answer: then the failure concerns all chats."""
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

    def _reply(self, episode: Episode, answer: EndpointAnswer) -> Reply:
        source = submission(episode, answer.text)
        if not source.strip():
            source = f"{'//' if episode.task.language == 'hip' else '#'} {answer.problem}\n"
        prices = self._sampling
        cost = answer.read * prices.prompt_price + answer.written * prices.completion_price
        return Reply(answer.text, source, answer.read, answer.written, cost / 1e6, answer.problem)

    def _first_served(self) -> str:
        status, data = self._endpoint.send("GET", "/models")
        if status != 200:
            hint = f"; {KEY} holds its key" if status in (401, 403) else ""
            raise self._endpoint.error(f"{failure_text(status, data)}{hint}")
        models = data.get("data") if isinstance(data, dict) else None
        first = models[0] if isinstance(models, list) and models else None
        if not isinstance(first, dict) or "id" not in first:
            raise self._endpoint.error("it serves no model; name one, URL#NAME")
        return str(first["id"])


@register_policy("openai")
def openai_policy(url: str, options: Options) -> OpenAI:
    """The policy of a server, with options in place of the default sampling."""
    return OpenAI(url, options.over(Sampling()))
