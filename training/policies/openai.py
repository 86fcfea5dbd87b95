"""A server with OpenAI's chat completions as a policy: vLLM, SGLang, llama.cpp and others."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from kernel_gym.training.edits import submission
from kernel_gym.training.episode import Episode
from kernel_gym.training.policies.base import Conversation, PolicyError, Reply

log = logging.getLogger(__name__)
KEY = "OPENAI_API_KEY"
AGAIN = (408, 429, 500, 502, 503, 504)
"""Statuses after which a request is sent again."""
TOO_LONG = (400, 413)
"""Statuses by which servers refuse a chat that has outgrown the model's context."""


@dataclass(frozen=True)
class Sampling:
    """How replies are drawn, and what a token costs.

    Attributes:
        max_tokens: Length of a reply, at most.
        temperature: 0 takes the likeliest token.
        prompt_price: US dollars a million tokens read.
        completion_price: US dollars a million tokens written.
    """

    max_tokens: int = 4096
    temperature: float = 1.0
    prompt_price: float = 0.0
    completion_price: float = 0.0


class OpenAI:
    """Writes through `POST URL/chat/completions`.

    The key is taken from the environment, `OPENAI_API_KEY`, where a server wants one. A request is
    sent again, later each time, after a lost connection or a status that says so, and not before
    the moment that the server names in `Retry-After`.

    Args:
        url: Up to and with `/v1`; `#NAME` behind it names the model, else it is the first served.
        sampling: How replies are drawn.
        parallel: Requests at a time.
        per_minute: Requests a minute, at most; None for no limit.
        tries: How often a request is sent, at most.
        backoff: Seconds before the second repetition; each later wait is twice as long.

    Raises:
        PolicyError: urllib3 is missing, the address is none, or the server does not answer.
    """

    def __init__(
        self,
        url: str,
        sampling: Sampling | None = None,
        parallel: int = 16,
        per_minute: float | None = None,
        tries: int = 6,
        backoff: float = 1.0,
    ) -> None:
        address, _, model = url.partition("#")
        if not address.startswith(("http://", "https://")):
            raise PolicyError(
                f"policy 'openai': found {address!r}, expected a URL such as http://HOST:8000/v1"
            )
        self.url, self.parallel = address.rstrip("/"), parallel
        self.sampling = sampling or Sampling()
        self.pace = Pace(per_minute)
        self._http = _client(parallel, tries, backoff)
        self.model = model or self._first_served()

    def reply(self, conversations: Sequence[Conversation]) -> list[Reply | None]:
        """Answers all, side by side.

        A chat that the server refuses in a later turn, as it does when the context is full, ends
        its episode.

        Raises:
            PolicyError: A request failed for good.
        """
        with ThreadPoolExecutor(self.parallel) as threads:
            return list(threads.map(self._answer, conversations))

    def _answer(self, conversation: Conversation) -> Reply | None:
        status, found = self._send(
            "POST",
            "/chat/completions",
            {
                "model": self.model,
                "messages": list(conversation.messages),
                "max_tokens": self.sampling.max_tokens,
                "temperature": self.sampling.temperature,
            },
        )
        if status in TOO_LONG and conversation.episode.turns:
            log.warning("%s ends here: %s", conversation.episode.task.id, _message(found))
            return None
        return self._read(conversation.episode, self._checked(status, found))

    def _read(self, episode: Episode, found: Any) -> Reply:
        """The reply in an answer."""
        try:
            text = found["choices"][0]["message"]["content"] or ""
            counts = found.get("usage") or {}
            read, written = (
                int(counts.get(name) or 0) for name in ("prompt_tokens", "completion_tokens")
            )
        except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
            raise self._error(f"an answer without choices: {str(found)[:200]}") from error
        prices = self.sampling
        cost = (read * prices.prompt_price + written * prices.completion_price) / 1e6
        return Reply(text, submission(episode, text), read, written, cost)

    def _first_served(self) -> str:
        found = self._checked(*self._send("GET", "/models"))
        try:
            return str(found["data"][0]["id"])
        except (KeyError, IndexError, TypeError) as error:
            raise self._error("it serves no model; name one, URL#NAME") from error

    def _send(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Sends a request until it is answered; the status and the JSON of the last answer."""
        from urllib3.exceptions import HTTPError

        key = os.environ.get(KEY)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self.pace.wait()
        try:
            answer = self._http.request(method, self.url + path, json=body, headers=headers)
            return answer.status, json.loads(answer.data)
        except HTTPError as error:
            raise self._error(f"no answer: {error}") from error
        except ValueError:
            return answer.status, answer.data.decode(errors="replace")

    def _checked(self, status: int, found: Any) -> Any:
        if status != 200:
            hint = f"; {KEY} holds its key" if status in (401, 403) else ""
            raise self._error(f"status {status}: {_message(found)}{hint}")
        return found

    def _error(self, what: str) -> PolicyError:
        return PolicyError(f"policy 'openai': {self.url}: {what}")


class Pace:
    """Lets so many through a minute, evenly, from any thread.

    Args:
        per_minute: How many; None for no limit.
        clock: Seconds that only grow.
        sleep: Waits for seconds.
    """

    def __init__(
        self,
        per_minute: float | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._gap = 60.0 / per_minute if per_minute else 0.0
        self._clock, self._sleep = clock, sleep
        self._next, self._lock = 0.0, threading.Lock()

    def wait(self) -> None:
        """Returns when it is this caller's turn."""
        if not self._gap:
            return
        with self._lock:
            now = self._clock()
            turn = max(now, self._next)
            self._next = turn + self._gap
        if turn > now:
            self._sleep(turn - now)


def _client(parallel: int, tries: int, backoff: float) -> Any:
    try:
        import urllib3
    except ImportError as error:
        mend = "install kernel-gym[openai]"
        raise PolicyError(f"policy 'openai': {error.name} is missing; {mend}") from error
    again = urllib3.Retry(
        total=tries - 1,
        backoff_factor=backoff / 2,
        status_forcelist=AGAIN,
        allowed_methods=None,  # a completion changes nothing on the server
        raise_on_status=False,
    )
    timeout = urllib3.Timeout(connect=10, read=1200)
    return urllib3.PoolManager(maxsize=parallel, retries=again, timeout=timeout)


def _message(found: Any) -> str:
    """What a server says went wrong; servers differ in where they say it."""
    inside = found.get("error", found) if isinstance(found, dict) else found
    text = inside.get("message", inside) if isinstance(inside, dict) else inside
    return " ".join(str(text).split())[:300]
