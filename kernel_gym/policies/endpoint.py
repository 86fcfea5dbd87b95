"""JSON over HTTP to a server that may be busy, restarting or away for a while."""

from __future__ import annotations

import json
import logging
import os
import random
import threading
import time
from itertools import count
from typing import Any

from kernel_gym.policies.base import PolicyError
from kernel_gym.policies.pace import Pace

log = logging.getLogger(__name__)
KEY = "OPENAI_API_KEY"
AGAIN = (408, 409, 425, 429)
"""Statuses after which a request is sent again, with those from 500 on."""
FIRST_CONTACT = 15.0
"""Seconds that a server which has not answered yet is waited for: the address may be wrong."""
PATIENCE = 1800.0
"""Seconds that a server which has answered before is waited for, by each request."""
FAILURES = 6
"""Failures with a status from 500 on after which a request is given up while others succeed."""
SAID_EVERY = 30.0
"""Seconds between two messages that say what is waited for."""


class Endpoint:
    """Sends requests until they are answered.

    A request is sent again after a lost connection or a status that says so: later each time, by a
    random part less so that requests do not come all at once, and not before the moment that the
    server names in `Retry-After`. The key is taken from the environment, `OPENAI_API_KEY`.

    Args:
        url: Up to and with `/v1`.
        parallel: Requests at a time.
        per_minute: Requests a minute, at most; None for no limit.
        patience: Seconds that a server which has answered before is waited for.
        first_wait: Seconds before the second try, at most; each later wait is twice as long.
        longest_wait: Seconds between two tries, at most.

    Raises:
        PolicyError: urllib3 is missing.
    """

    def __init__(
        self,
        url: str,
        parallel: int = 16,
        per_minute: float | None = None,
        patience: float = PATIENCE,
        first_wait: float = 1.0,
        longest_wait: float = 60.0,
    ) -> None:
        self.url = url.rstrip("/")
        self._patience, self._first, self._longest = patience, first_wait, longest_wait
        self._pace, self._http = Pace(per_minute), _client(parallel)
        self._answered = False
        self._succeeded = self._said = -float("inf")
        self._lock = threading.Lock()

    def send(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Sends a request until it is answered.

        Args:
            method: `GET` or `POST`.
            path: Behind the URL.
            body: Data for JSON.

        Returns:
            The status, and the JSON of the answer, or its text where it is none. A status from 500
            on, or 0 for no answer at all: the server fails on this request and not on others.

        Raises:
            PolicyError: There was no answer for as long as is waited for one.
        """
        began = time.monotonic()
        for tries in count(1):
            status, answer, after = self._try(method, path, body)
            if status and not (status in AGAIN or status >= 500):
                self._succeeded = time.monotonic() if status == 200 else self._succeeded
                return status, answer
            wait = max(self._backoff(tries), after)
            left = self._patience_left(began) - wait
            others_succeed = self._succeeded > began
            if others_succeed and (left < 0 or (status >= 500 and tries >= FAILURES)):
                return status, answer
            what = f"status {status}: {message_in(answer)}" if status else f"no answer: {answer}"
            if left < 0:
                raise self.error(what)
            self._say(f"{what}; waiting for it, {left:.0f} s more at most")
            time.sleep(wait)
        raise AssertionError

    def error(self, what: str) -> PolicyError:
        """An error that names the server."""
        return PolicyError(f"policy 'openai': {self.url}: {what}")

    def _try(self, method: str, path: str, body: Any) -> tuple[int, Any, float]:
        """One request: status, answer and the seconds to wait for; status 0 without an answer."""
        from urllib3.exceptions import HTTPError, LocationValueError

        key = os.environ.get(KEY)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._pace.wait()
        try:
            answer = self._http.request(method, self.url + path, json=body, headers=headers)
        except LocationValueError as error:
            raise self.error(str(error)) from error
        except HTTPError as error:
            return 0, error, 0.0
        self._answered = True
        return answer.status, _parsed(answer.data), _retry_after(answer.headers)

    def _backoff(self, tries: int) -> float:
        """Seconds to wait for after so many tries."""
        longest = min(self._first * 2 ** min(tries - 1, 20), self._longest)
        return longest * random.uniform(0.5, 1.0)

    def _patience_left(self, began: float) -> float:
        """Seconds that a request is still waited for."""
        patience = self._patience if self._answered else min(self._patience, FIRST_CONTACT)
        return began + patience - time.monotonic()

    def _say(self, what: str) -> None:
        """Logs what is waited for, now and then."""
        with self._lock:
            now = time.monotonic()
            if now - self._said < SAID_EVERY:
                return
            self._said = now
        log.warning("%s: %s", self.url, what)


def message_in(answer: Any) -> str:
    """What a server says went wrong; servers differ in where they say it."""
    inside = answer.get("error", answer) if isinstance(answer, dict) else answer
    text = inside.get("message", inside) if isinstance(inside, dict) else inside
    return " ".join(str(text).split())[:300]


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return data.decode(errors="replace")


def _retry_after(headers: Any) -> float:
    """Seconds that a server asks to wait for; 0 where it says nothing that can be read."""
    import urllib3
    from urllib3.exceptions import InvalidHeader

    try:
        return max(urllib3.Retry().parse_retry_after(headers.get("Retry-After", "0")), 0.0)
    except (InvalidHeader, OverflowError, ValueError):
        return 0.0


def _client(parallel: int) -> Any:
    try:
        import urllib3
    except ImportError as error:
        mend = "install kernel-gym[openai]"
        raise PolicyError(f"policy 'openai': {error.name} is missing; {mend}") from error
    timeout = urllib3.Timeout(connect=10, read=1200)
    return urllib3.PoolManager(maxsize=parallel, retries=False, timeout=timeout)
