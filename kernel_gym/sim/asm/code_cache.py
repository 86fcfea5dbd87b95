"""Keeps code objects that were assembled, for other processes of the same user.

A folder has a limited number of places. A place holds the last code object that came to it, with
the digest of its text. So the folder needs no clearing. No candidate may write to it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path

MAX_ENTRY_BYTES = 1 << 20
_PLACE_DIGITS = 3
"""Hexadecimal digits of a place's name: 4096 places, of which most hold about 10 kB."""


class CodeCache:
    """The code objects in a folder.

    Args:
        folder: The folder, which exists.
        version: The version of the assembler.
    """

    def __init__(self, folder: Path, version: str) -> None:
        self._folder, self._version = folder, version.encode()

    def get(self, text: bytes) -> bytes | None:
        """Returns the code object of a text; None if it is not here."""
        digest = self._digest(text)
        try:
            entry = self._place(digest).read_bytes()
        except OSError:
            return None
        return entry[len(digest) :] if entry.startswith(digest) else None

    def put(self, text: bytes, code: bytes) -> None:
        """Keeps a code object, unless it is large or the folder cannot be written."""
        digest = self._digest(text)
        if len(code) > MAX_ENTRY_BYTES:
            return
        with contextlib.suppress(OSError):
            descriptor, name = tempfile.mkstemp(dir=self._folder)
            with os.fdopen(descriptor, "wb") as file:
                file.write(digest + code)
            os.replace(name, self._place(digest))

    def _digest(self, text: bytes) -> bytes:
        return hashlib.sha256(self._version + b"\0" + text).digest()

    def _place(self, digest: bytes) -> Path:
        return self._folder / digest.hex()[:_PLACE_DIGITS]
