"""One executor per process and device, shared by the environments that live there.

Starting a device costs seconds; environments come and go. The executors are closed when the process
exits, or by :func:`close_executors`.
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
    """The executor of this process for a device, started on first use.

    Args:
        device: A device name, or `auto`.
        secret: What seeds are mixed with; by default the secret of this process.

    Returns:
        An executor that other environments of this process may be using too.
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
    """Closes every executor this process started; those of a parent process are not ours."""
    for key in [key for key in _EXECUTORS if key[0] == os.getpid()]:
        _EXECUTORS.pop(key).close()
