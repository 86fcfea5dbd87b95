"""The secret of a run: what makes its draws unknown to anybody who knows only a seed.

A worker can read the code of the tasks. Whoever knows the seed of an evaluation as well could
compute its data, its unseen workloads and their answers in advance. Draws therefore come from
HMAC-SHA256 of the seed, keyed with 32 random bytes that belong to a run:

- they stay in the judge's process; no worker, template, environment or command line gets them;
- `secret.json` in the run's folder keeps them (mode 0600), so that a run is resumed and replayed
  with the same draws;
- each record has their SHA-256, so that a record can be checked against the secret of its run.
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
"""The file in a run's folder."""
SIZE = 32
"""Bytes of a secret."""
DRAW_BITS = 48
"""Of a derived seed; sums with a few small numbers fit every generator."""

MOST_FILES = 100
"""Files that workers see empty, at most: those that this process learnt of last."""

_files: dict[str, None] = {}
"""Files with a secret that this process knows, in the order in which it learnt of them."""
_of_process: RunSecret | None = None
_making = threading.Lock()


class RunSecret:
    """Derives what an evaluation draws from its public seed.

    Args:
        key: 32 bytes.
        path: the file that holds them; hidden from workers.

    Raises:
        ValueError: the key has another length.
    """

    def __init__(self, key: bytes, path: Path | None = None) -> None:
        if len(key) != SIZE:
            raise ValueError(f"a secret has {SIZE} bytes, found {len(key)}")
        self._key = key
        self._path = path
        self._hide()

    @classmethod
    def fresh(cls) -> RunSecret:
        """A new secret from the operating system."""
        return cls(secrets.token_bytes(SIZE))

    @property
    def sha256(self) -> str:
        """What records carry: it commits to the secret and tells nothing about it."""
        return hashlib.sha256(self._key).hexdigest()

    def draw(self, *parts: object) -> int:
        """The seed for one purpose, of 48 bits.

        Args:
            parts: the public seed, the task and the purpose; their texts count.
        """
        text = json.dumps([str(part) for part in parts]).encode()
        return _to_seed(hmac.digest(self._key, text, hashlib.sha256))

    def write(self, path: Path) -> RunSecret:
        """Puts the secret into a new file that only its owner may read.

        Args:
            path: the file; its folder is made when absent.

        Returns:
            The secret, which knows its file.

        Raises:
            StoreError: the file is there already or cannot be made.
        """
        text = _File(secret=self._key.hex(), sha256=self.sha256).model_dump_json() + "\n"
        draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
        if path.exists():
            raise StoreError(f"{path} holds the secret of another run")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(text)
            os.replace(draft, path)
        except OSError as error:
            raise StoreError(f"{path}: a secret cannot be kept there: {error.strerror}") from error
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
    """No secret: draws come from the seed alone."""

    def __init__(self) -> None:
        super().__init__(bytes(SIZE))

    @property
    def sha256(self) -> str:
        """Empty: a record without a secret says so."""
        return ""

    def draw(self, *parts: object) -> int:
        """The seed for one purpose, which anybody can compute."""
        return _to_seed(hashlib.sha256("/".join(map(str, parts)).encode()).digest())


PUBLIC: RunSecret = _Public()
"""Draws that anybody can repeat on any machine from the seed alone: for checks by hand and for
tests. Never where a policy is paid or trained: who knows the seed knows all answers."""


def process_secret() -> RunSecret:
    """The secret of this process: for seeds that somebody names without naming a secret."""
    global _of_process
    with _making:
        if _of_process is None:
            _of_process = RunSecret.fresh()
        return _of_process


def read_secret(path: Path) -> RunSecret:
    """Reads the secret of a run.

    Args:
        path: its file, or the run's folder.

    Raises:
        StoreError: there is none, or the file is malformed.
    """
    path = path / SECRET if path.is_dir() else path
    try:
        found = _File.model_validate_json(path.read_bytes())
        secret = RunSecret(bytes.fromhex(found.secret), path)
    except OSError as error:
        raise StoreError(f"{path}: no secret can be read there: {error.strerror}") from error
    except ValidationError as error:
        raise StoreError(f"{path}: {first_line(error)}") from None
    except ValueError as error:
        raise StoreError(f"{path}: {error}") from None
    if secret.sha256 != found.sha256:
        raise StoreError(f"{path}: its sha256 is not that of its secret")
    return secret


def kept_secret(path: Path) -> RunSecret:
    """The secret in a file, which is made with a new one when it is absent.

    Raises:
        StoreError: the file is malformed or cannot be made.
    """
    return read_secret(path) if path.exists() else RunSecret.fresh().write(path)


def secret_files() -> tuple[str, ...]:
    """Files of this machine that hold a secret this process knows: workers see them empty."""
    return tuple(path for path in _files if os.path.isfile(path))[-MOST_FILES:]


class _File(Record):
    """What `secret.json` holds, both in hexadecimal digits."""

    secret: str
    sha256: str


def _to_seed(digest: bytes) -> int:
    return int.from_bytes(digest[: DRAW_BITS // 8], "little")
