"""Inline executors that the environments of a process share, one per device and secret.

It takes seconds to start a device, and environments are made often. The executors are closed when
the process exits, or by :func:`close_executors`.
"""

from __future__ import annotations

import atexit
import os
import threading
from typing import TYPE_CHECKING

from kernel_gym.storage.secret import RunSecret, process_secret

if TYPE_CHECKING:
    from kernel_gym.executors.inline import InlineExecutor

_EXECUTORS: dict[tuple[int, str, str], InlineExecutor] = {}
_STARTING = threading.Lock()


def shared_executor(device: str, secret: RunSecret | None = None) -> InlineExecutor:
    """Returns the executor of this process for a device. It starts on first use.

    Args:
        device: A device name, or `auto`.
        secret: The secret that is mixed into seeds; by default the secret of this process.

    Returns:
        An executor that other environments of this process may use too.
    """
    from kernel_gym.executors.inline import InlineExecutor

    secret = process_secret() if secret is None else secret
    key = (os.getpid(), device, secret.sha256)
    with _STARTING:
        if key not in _EXECUTORS:
            _EXECUTORS[key] = InlineExecutor(device, secret=secret)
        return _EXECUTORS[key]


@atexit.register
def close_executors() -> None:
    """Closes every executor that this process started, but none of a parent process."""
    for key in [key for key in _EXECUTORS if key[0] == os.getpid()]:
        _EXECUTORS.pop(key).close()
