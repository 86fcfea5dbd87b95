"""JSON over HTTP to a server that may be busy, restarting or unreachable for a while."""

from __future__ import annotations

import json
import logging
import os
import random
import re
import threading
import time
from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING

from kernel_gym.policies.base import PolicyError
from kernel_gym.policies.pace import Pace

if TYPE_CHECKING:
    import urllib3

log = logging.getLogger(__name__)
KEY = "OPENAI_API_KEY"
"""The environment variable with the API key."""
RETRIED = (408, 409, 425, 429)
"""Statuses below 500 after which a request is sent again; all statuses from 500 on are too."""
FIRST_CONTACT = 15.0
"""Seconds to wait for a server that has never answered; its address may be wrong."""
PATIENCE = 1800.0
"""Seconds that each request waits for a server that has answered before."""
REQUEST_TIMEOUT = 1200.0
"""Default seconds for one request. Reasoning models write for many minutes."""
TIMEOUTS = 2
"""Number of requests without an answer in time after which a chat is given up if others succeed.
Each may have been paid for."""
FAILURES = 6
"""Tries after which a request with a status from 500 on is given up if other requests succeed."""
_ERRNO = re.compile(r"\[Errno -?\d+\] ")
_READ_TIMEOUT = re.compile(r"read timeout=([0-9.]+)")
LOG_EVERY = 30.0
"""Least seconds between two log messages about waiting."""


class Endpoint:
    """Sends requests until they are answered.

    A request is sent again after a lost connection or a status in :data:`RETRIED` or from 500 on.
    Waits grow exponentially with random jitter, and respect `Retry-After`. The API key is read from
    the environment variable `OPENAI_API_KEY`.

    Args:
        url: The base URL, which ends in `/v1`.
        parallel: Most requests at the same time.
        per_minute: Most requests per minute; None for no limit.
        patience: Seconds to wait for a server that has answered before.
        first_wait: Most seconds before the second try; each later wait is twice as long.
        longest_wait: Most seconds between two tries.
        request_timeout: Seconds for the answer to one request, or None for
            :data:`REQUEST_TIMEOUT`.

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
        request_timeout: float | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self._patience, self._first, self._longest = patience, first_wait, longest_wait
        self._pace = Pace(per_minute)
        self._http = _client(parallel, request_timeout or REQUEST_TIMEOUT)
        self._answered = False
        self._succeeded = self._logged = -float("inf")
        self._lock = threading.Lock()

    def send(self, method: str, path: str, body: object = None) -> tuple[int, object]:
        """Sends a request until it is answered.

        Args:
            method: `GET` or `POST`.
            path: The path after the base URL.
            body: The data to send as JSON.

        Returns:
            The status, and the JSON of the answer or its text if it is not JSON. A status from 500
            on, or 0 for no answer, means that the server fails on this request but not on others.

        Raises:
            PolicyError: The server did not answer in time.
        """
        began, late = time.monotonic(), 0
        for tries in count(1):
            status, answer, after = self._try(method, path, body)
            late += status == 0 and _is_late(answer)
            if status and not (status in RETRIED or status >= 500):
                self._succeeded = time.monotonic() if status == 200 else self._succeeded
                return status, answer
            wait = max(self._backoff(tries), after)
            left = self._patience_left(began) - wait
            others_succeed = self._succeeded > began
            hopeless = late >= TIMEOUTS or (status >= 500 and tries >= FAILURES)
            if others_succeed and (left < 0 or hopeless):
                return status, answer
            what = failure_text(status, answer)
            if left < 0:
                raise self.error(what)
            self._log(f"{what}; the request is sent again, for {left:.0f} s more at most")
            time.sleep(wait)
        raise AssertionError

    def error(self, what: str) -> PolicyError:
        """A :class:`PolicyError` that names the server."""
        return PolicyError(f"policy 'openai': {self.url}: {what}")

    def _try(self, method: str, path: str, body: object) -> tuple[int, object, float]:
        """Sends one request; returns status (0 without answer), answer and seconds to wait."""
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
        """Seconds to wait after a number of failed tries."""
        longest = min(self._first * 2 ** min(tries - 1, 20), self._longest)
        return longest * random.uniform(0.5, 1.0)

    def _patience_left(self, began: float) -> float:
        """Seconds for which a request may still wait."""
        patience = self._patience if self._answered else min(self._patience, FIRST_CONTACT)
        return began + patience - time.monotonic()

    def _log(self, what: str) -> None:
        """Logs why a request waits, but not too often."""
        with self._lock:
            now = time.monotonic()
            if now - self._logged < LOG_EVERY:
                return
            self._logged = now
        log.warning("%s: %s", self.url, what)


def message_in(answer: object) -> str:
    """The error message in an answer; servers differ in where they put it."""
    inside = answer.get("error", answer) if isinstance(answer, dict) else answer
    text = inside.get("message", inside) if isinstance(inside, dict) else inside
    return " ".join(str(text).split())[:300]


def failure_text(status: int, answer: object) -> str:
    """Returns the failure in the words of somebody who waits for a model.

    Args:
        status: The status of the server; 0 for no answer.
        answer: What it answered, or the error of urllib3.
    """
    from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

    if status:
        return f"status {status}: {message_in(answer)}"
    if _is_late(answer):
        seconds = _READ_TIMEOUT.search(str(answer))
        within = f" within {float(seconds[1]):.4g} s" if seconds else " in time"
        return f"no answer of the model{within} (--request-timeout)"
    inner = next((a for a in getattr(answer, "args", ()) if isinstance(a, Exception)), answer)
    reason = _ERRNO.sub("", str(inner).rpartition(": ")[2])
    if isinstance(answer, NewConnectionError | ConnectTimeoutError):
        return f"no server answers there ({reason})"
    return f"no answer of the model: the connection to its server was lost ({reason})"


def _is_late(error: object) -> bool:
    """Whether a request got no answer in time, so that it may have been paid for."""
    from urllib3.exceptions import ReadTimeoutError

    return isinstance(error, ReadTimeoutError)


def _parsed(data: bytes) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return data.decode(errors="replace")


def _retry_after(headers: Mapping[str, str]) -> float:
    """Seconds that the server asks to wait; 0 if the header is absent or malformed."""
    import urllib3
    from urllib3.exceptions import InvalidHeader

    try:
        return max(urllib3.Retry().parse_retry_after(headers.get("Retry-After", "0")), 0.0)
    except (InvalidHeader, OverflowError, ValueError):
        return 0.0


def _client(parallel: int, seconds: float) -> urllib3.PoolManager:
    try:
        import urllib3
    except ImportError as error:
        fix = "install kernel-gym[openai]"
        raise PolicyError(f"policy 'openai': {error.name} is missing; {fix}") from error
    timeout = urllib3.Timeout(connect=10, read=seconds)
    return urllib3.PoolManager(maxsize=parallel, retries=False, timeout=timeout)
