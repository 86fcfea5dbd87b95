"""Keeps what Triton compiles in a file of the judge, and takes it from there the next time.

The file is a log: its length, then records, each a ZIP archive with the files of one kernel. A
record counts when the length covers it, so that a worker may be killed at any time.
"""

from __future__ import annotations

import io
import os
import struct
import threading
import zipfile
from pathlib import Path
from typing import ClassVar

from triton import knobs
from triton.runtime.cache import FileCacheManager

from kernel_gym.protocol.compiled import LENGTH, SIZE

_RECORD = struct.Struct("<I")
"""The bytes of one record."""
_FASTEST = 1
"""Level of compression. It makes a fifth of the texts of a kernel within milliseconds."""


class CompiledLog:
    """The log of one worker.

    Args:
        descriptor: The file.
    """

    def __init__(self, descriptor: int) -> None:
        self._file = descriptor
        self._lock = threading.Lock()
        self._kernels: dict[str, bytes] = {}
        self._used = 0

    def read(self) -> None:
        """Reads the records that the judge has copied into the file."""
        (self._used,) = LENGTH.unpack(os.pread(self._file, LENGTH.size, 0))
        content = os.pread(self._file, self._used, LENGTH.size)
        place = 0
        while place < len(content):
            (size,) = _RECORD.unpack_from(content, place)
            place += _RECORD.size
            archive = content[place : place + size]
            self._kernels[_key(archive)] = archive
            place += size

    def files(self, key: str) -> dict[str, bytes]:
        """Returns the files of a kernel by name; none if the log does not have it."""
        if key not in self._kernels:
            return {}
        with zipfile.ZipFile(io.BytesIO(self._kernels[key])) as archive:
            return {name: archive.read(name) for name in archive.namelist()}

    def add(self, key: str, files: dict[str, bytes]) -> None:
        """Adds a kernel, unless the file is full."""
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=_FASTEST) as archive:
            archive.comment = key.encode()
            for name, content in files.items():
                archive.writestr(name, content)
        record = buffer.getvalue()
        with self._lock:  # Triton may compile in several threads
            used = self._used + _RECORD.size + len(record)
            if LENGTH.size + used > SIZE:
                return
            os.pwrite(self._file, _RECORD.pack(len(record)) + record, LENGTH.size + self._used)
            os.pwrite(self._file, LENGTH.pack(used), 0)
            self._used = used


class LoggedCache(FileCacheManager):
    """The cache of Triton in the worker's own folder, with the log behind it."""

    log: ClassVar[CompiledLog]

    def get_group(self, filename: str) -> dict[str, str] | None:
        """Returns the paths of a kernel's files by name, or None."""
        if (known := super().get_group(filename)) is not None:
            return known
        files = self.log.files(self.key)
        if filename not in files:
            return None
        group = {name: self.put(content, name) for name, content in files.items()}
        super().put_group(filename, group)
        return group

    def put_group(self, filename: str, group: dict[str, str]) -> str:
        """Notes the files of a kernel that was compiled."""
        self.log.add(self.key, {name: Path(path).read_bytes() for name, path in group.items()})
        return super().put_group(filename, group)


def install(descriptor: int) -> CompiledLog:
    """Makes Triton use the log in a file."""
    LoggedCache.log = CompiledLog(descriptor)
    knobs.cache.manager_class = LoggedCache
    return LoggedCache.log


def _key(archive: bytes) -> str:
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        return opened.comment.decode()
