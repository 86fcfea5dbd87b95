"""Reads files of folders that others wrote: links must not lead out of the folder."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

MAX_BYTES = 1 << 30
"""Most bytes of one file, unless its reader says less."""


class LeadsOutError(OSError):
    """A path leads out of its folder, through a link or `..`."""


def read_inside(folder: Path, path: Path, max_bytes: int = MAX_BYTES) -> bytes:
    """Returns the bytes of a regular file in a folder.

    Args:
        folder: The folder.
        path: A path in it. Links are followed if they lead to a file of the folder.
        max_bytes: Most bytes of the file.

    Raises:
        LeadsOutError: The path leads out of the folder.
        OSError: The file is missing, is no regular file, or is too long.
    """
    try:
        place = path.resolve(strict=True)
    except RuntimeError:
        raise OSError(errno.ELOOP, "found links in a circle") from None
    if not place.is_relative_to(folder.resolve()):
        raise LeadsOutError(0, "it leads out of its folder")
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(place, flags), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(0, "found no regular file")
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise OSError(0, f"found more than {max_bytes} bytes")
    return data
