"""Requests that the service refuses."""

from __future__ import annotations

from kernel_gym.errors import InputError

BUSY_SECONDS = 5
"""Seconds after which a request that was refused for now may be sent again."""


class NotFound(InputError, LookupError):
    """There is no such submission or session, or another token owns it."""


class Busy(InputError):
    """The service takes no more submissions for now.

    Attributes:
        status: 429 if a limit of the token is used up, 503 if one of the service is.
        retry_after: Seconds after which to try again.
    """

    def __init__(self, status: int, message: str, retry_after: int = BUSY_SECONDS) -> None:
        super().__init__(message)
        self.status, self.retry_after = status, retry_after
