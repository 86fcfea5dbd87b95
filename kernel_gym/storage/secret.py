"""The secret of a run. Without it nobody can compute the draws of an evaluation from its seed.

A worker can read the code of the tasks. With the seed of an evaluation it could compute the data,
the unseen workloads and their answers in advance. Draws therefore come from HMAC-SHA256 of the
seed, with 32 random bytes of the run as the key:

- The key stays in the judge's process. No worker, template process, environment variable or command
  line gets it.
- `secret.json` in the run folder stores it (mode 0600), so that a run can be resumed and replayed
  with the same draws.
- Each record has the SHA-256 of the key, so that it can be checked against the secret of its run.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import threading
from pathlib import Path

from pydantic import ValidationError

from kernel_gym.records import Record
from kernel_gym.storage.json_lines import StoreError, first_line

SECRET = "secret.json"
"""The name of the file in a run folder."""
SIZE = 32
"""Bytes of a secret."""
DRAW_BITS = 48
"""Bits of a derived seed. A sum with small numbers still fits every generator."""

MAX_FILES = 100
"""Most files that workers see empty: the last ones that this process loaded or wrote."""

_files: dict[str, None] = {}
"""Files with a secret that this process loaded or wrote, the latest last."""
_of_process: RunSecret | None = None
_making = threading.Lock()


class RunSecret:
    """Derives the seeds of an evaluation's draws from its public seed.

    Args:
        key: 32 bytes.
        path: The file that holds the key. It is hidden from workers.

    Raises:
        ValueError: The key has another length.
    """

    def __init__(self, key: bytes, path: Path | None = None) -> None:
        if len(key) != SIZE:
            raise ValueError(f"a secret has {SIZE} bytes, found {len(key)}")
        self._key = key
        self._path = path
        self._hide()

    @classmethod
    def fresh(cls) -> RunSecret:
        """Makes a new secret from random bytes of the operating system."""
        return cls(secrets.token_bytes(SIZE))

    @property
    def sha256(self) -> str:
        """The hash that records contain. It identifies the secret without revealing it."""
        return hashlib.sha256(self._key).hexdigest()

    def draw(self, *parts: object) -> int:
        """Returns the 48-bit seed for one purpose.

        Args:
            parts: The public seed, the task and the purpose. Their texts are hashed.
        """
        text = json.dumps([str(part) for part in parts]).encode()
        return _to_seed(hmac.digest(self._key, text, hashlib.sha256))

    def write(self, path: Path) -> RunSecret:
        """Writes the secret to a new file that only its owner may read.

        Args:
            path: The file. Its folder is made if it does not exist.

        Returns:
            The same secret with the path of its file.

        Raises:
            StoreError: The file exists or cannot be made.
        """
        _write_new(path, _File(secret=self._key.hex(), sha256=self.sha256))
        return RunSecret(self._key, path)

    def __repr__(self) -> str:
        return f"RunSecret(sha256={self.sha256!r})"

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        self._hide()

    def _hide(self) -> None:
        if self._path is not None:
            path = str(self._path.absolute())
            _files.pop(path, None)
            _files[path] = None


class _Public(RunSecret):
    """The absence of a secret: draws come from the seed alone."""

    def __init__(self) -> None:
        super().__init__(bytes(SIZE))

    @property
    def sha256(self) -> str:
        """The empty text, which means that a record has no secret."""
        return ""

    def draw(self, *parts: object) -> int:
        """Returns the seed for one purpose, which anybody can compute."""
        return _to_seed(hashlib.sha256("/".join(map(str, parts)).encode()).digest())

    def write(self, path: Path) -> RunSecret:
        """Writes that there is no secret: an empty hash.

        Raises:
            StoreError: The file exists or cannot be made.
        """
        _write_new(path, _File(sha256=""))
        return self


class RemoteSecret(RunSecret):
    """The secret of a service, of which only the hash is known here.

    Args:
        sha256: Its hash.
        url: The service. A run folder names it in place of the key.
    """

    def __init__(self, sha256: str, url: str) -> None:
        super().__init__(bytes(SIZE))
        self._sha256, self._url = sha256, url

    @property
    def sha256(self) -> str:
        """The hash that records contain."""
        return self._sha256

    def draw(self, *parts: object) -> int:
        """Draws nothing.

        Raises:
            StoreError: Always: only the service can draw.
        """
        raise StoreError(
            f"the secret is that of {self._url}, which alone draws with it: "
            f"give --executor {self._url}"
        )

    def write(self, path: Path) -> RunSecret:
        """Writes the hash and the address of the service.

        Raises:
            StoreError: The file exists or cannot be made.
        """
        _write_new(path, _File(sha256=self._sha256, service=self._url))
        return self


PUBLIC: RunSecret = _Public()
"""Draws that anybody can repeat on any machine from the seed alone, for checks by hand and for
tests. Never use it to reward or train a policy, because the seed gives away all answers."""


def process_secret() -> RunSecret:
    """Returns the secret of this process, for seeds that are given without a secret."""
    global _of_process
    with _making:
        if _of_process is None:
            _of_process = RunSecret.fresh()
        return _of_process


def read_secret(path: Path) -> RunSecret:
    """Reads the secret of a run.

    Args:
        path: The file of the secret, or the run folder.

    Raises:
        StoreError: There is no such file, or it is malformed.
    """
    path = path / SECRET if path.is_dir() else path
    try:
        stored = _File.model_validate_json(path.read_bytes())
        if stored.service:
            return RemoteSecret(stored.sha256, stored.service)
        if not stored.sha256 and not stored.secret:
            return PUBLIC
        secret = RunSecret(bytes.fromhex(stored.secret), path)
    except OSError as error:
        raise StoreError(f"{path}: no secret can be read there: {error.strerror}") from error
    except ValidationError as error:
        raise StoreError(f"{path}: {first_line(error)}") from None
    except ValueError as error:
        raise StoreError(f"{path}: {error}") from None
    if secret.sha256 != stored.sha256:
        raise StoreError(f"{path}: its sha256 is not that of its secret")
    return secret


def kept_secret(path: Path) -> RunSecret:
    """Reads the secret in a file, or writes a new one if the file does not exist.

    Raises:
        StoreError: The file is malformed or cannot be made.
    """
    return read_secret(path) if path.exists() else RunSecret.fresh().write(path)


def secret_files() -> tuple[str, ...]:
    """Returns the files with a secret that this process knows. Workers see them empty."""
    return tuple(path for path in _files if os.path.isfile(path))[-MAX_FILES:]


class _File(Record):
    """The content of `secret.json`: the key and its hash in hexadecimal digits.

    Both are empty if draws come from the seed alone.
    """

    secret: str = ""
    sha256: str
    service: str = ""
    """The address of the service that has the key, if it is not here."""


def _write_new(path: Path, content: _File) -> None:
    """Writes a file that only its owner may read.

    Raises:
        StoreError: The file exists or cannot be made.
    """
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
    if path.exists():
        raise StoreError(f"{path} holds the secret of another run")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(content.model_dump_json(exclude_defaults=True) + "\n")
        os.replace(draft, path)
    except OSError as error:
        raise StoreError(f"{path}: a secret cannot be kept there: {error.strerror}") from error


def _to_seed(digest: bytes) -> int:
    return int.from_bytes(digest[: DRAW_BITS // 8], "little")
