"""Errors of the client."""

from __future__ import annotations

from kernel_gym.errors import InputError, KernelGymError


class ServiceError(KernelGymError):
    """The service failed on a request, and its log has the reason."""


class Unavailable(ServiceError):
    """The service did not answer for longer than the client waits."""


class Refused(InputError, ValueError):
    """The service refused a request.

    Attributes:
        status: The HTTP status, from 400 to 499.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status

    def __reduce__(self) -> tuple[object, ...]:
        return (Refused, (self.status, str(self)))
