"""The client of the evaluation service. It loads no PyTorch and needs no extra.

Example:
    >>> from kernel_gym.client import Client
    >>> client = Client("http://127.0.0.1:8000", token="...")
    >>> client.close()
"""

from kernel_gym.client.clients import AsyncClient, AsyncRemoteSession, Client, RemoteSession
from kernel_gym.client.errors import Refused, ServiceError, Unavailable
from kernel_gym.client.wire import Result, StepResult, Submission

__all__ = [
    "AsyncClient",
    "AsyncRemoteSession",
    "Client",
    "Refused",
    "RemoteSession",
    "Result",
    "ServiceError",
    "StepResult",
    "Submission",
    "Unavailable",
]
