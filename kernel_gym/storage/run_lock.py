"""The lock of a run folder: one process plays a run at a time."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from weakref import WeakValueDictionary

from kernel_gym.storage.json_lines import StoreError


class RunLock:
    """Holds a folder until the last store of this process that uses it is gone.

    Args:
        folder: A folder that exists.

    Raises:
        StoreError: Another process holds it.
    """

    def __init__(self, folder: Path) -> None:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise StoreError(
                f"{folder}: another process plays a run there; wait for it or give another folder"
            ) from None
        except OSError:  # a file system without locks
            pass
        self._descriptor = descriptor

    def __del__(self) -> None:
        """Releases the folder."""
        if hasattr(self, "_descriptor"):
            os.close(self._descriptor)


_held: WeakValueDictionary[str, RunLock] = WeakValueDictionary()


def lock_run(folder: Path) -> RunLock:
    """Returns the lock of a folder. This process may ask for it again.

    Raises:
        StoreError: Another process holds it.
    """
    key = str(folder.resolve())
    lock = _held.get(key)
    if lock is None:
        lock = _held[key] = RunLock(folder)
    return lock
