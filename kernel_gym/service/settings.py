"""The settings of a service and its tokens."""

from __future__ import annotations

import hashlib
import hmac
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kernel_gym.errors import InputError
from kernel_gym.rewards import UnknownReward, reward_names
from kernel_gym.tasks import get_task, load_suite
from kernel_gym.tasks.names import PREFIX, UnknownName, is_task, task_ids


class SettingsError(InputError, ValueError):
    """A file of tokens or an option of the service cannot be used."""


class Token(BaseModel):
    """A token and its limits."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[\w.-]+$")]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] = ""
    """The SHA-256 of the token in hexadecimal digits. The token itself is in no file."""
    in_flight: int = Field(default=1024, ge=1)
    """Most submissions that are queued or running."""
    per_day: int = Field(default=1_000_000, ge=0)
    """Most submissions a day (UTC)."""
    full_records: bool = False
    """Whether it reads whole records, with what identifies hidden workloads. A trainer needs them
    for `executor="http://..."`. Never give such a token to a policy."""

    @property
    def session(self) -> str:
        """The only session that its requests may name; empty if they may do anything."""
        return ""


ANYBODY = Token(name="anybody", full_records=True)
"""The caller of each request on a service without tokens, which listens on loopback only."""


class _Tokens(BaseModel):
    model_config = ConfigDict(extra="forbid")

    token: list[Token] = Field(min_length=1)


@dataclass(frozen=True)
class ServiceSettings:
    """The limits and contents of a service.

    Attributes:
        folder: Where the queue and the secret are kept.
        tokens: The tokens; without any, every request is :data:`ANYBODY`.
        tasks: Task ids and suites that requests may name; without any, all of the registry.
            `generated:` stands for all generated tasks.
        max_queue: Most queued submissions; more get status 503.
    """

    folder: Path
    tokens: tuple[Token, ...] = ()
    tasks: tuple[str, ...] = ()
    max_queue: int = 20_000

    def token_of(self, secret: str | None) -> Token | None:
        """The token of a request; None if it is unknown."""
        if not self.tokens:
            return ANYBODY
        digest = hashlib.sha256((secret or "").encode("utf-8", "surrogatepass")).hexdigest()
        matches = [t for t in self.tokens if hmac.compare_digest(t.sha256, digest)]
        return matches[0] if matches else None


class Allowed:
    """The tasks and rewards that requests may name.

    Args:
        tasks: As for :class:`ServiceSettings`.

    Raises:
        UnknownName: A task or suite is unknown.
    """

    def __init__(self, tasks: Sequence[str] = ()) -> None:
        self._generated = not tasks or PREFIX in tasks
        self._ids = frozenset(
            task.id
            for name in tasks
            if name != PREFIX
            for task in ((get_task(name),) if is_task(name) else load_suite(name).tasks)
        )
        self._all = not tasks

    def ids(self) -> tuple[str, ...]:
        """The ids of the tasks, without generated ones."""
        return tuple(name for name in task_ids() if self._all or name in self._ids)

    def require(self, name: str) -> None:
        """Checks that a task may be named.

        Raises:
            UnknownName: It does not exist or is not allowed; the message has near matches.
        """
        if not (is_generated(name) and self._generated) and name not in self.ids():
            raise UnknownName("task", name, self.ids())

    def reward(self, name: str) -> str:
        """Checks that a name is that of a registered reward, and neither a file nor a module.

        Raises:
            UnknownReward: It is not; the message has near matches.
        """
        if name not in reward_names():
            raise UnknownReward(name, reward_names())
        return name


def is_generated(name: str) -> bool:
    """Whether a name is that of a generated task."""
    return name.startswith(PREFIX) or name.partition("/")[2].startswith(PREFIX)


def read_tokens(path: Path) -> tuple[Token, ...]:
    """Reads a TOML file with a table `[[token]]` for each token.

    Raises:
        SettingsError: The file is missing or malformed.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        tokens = _Tokens.model_validate(content).token
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read ({error.strerror})") from None
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise SettingsError(f"{path}: key {key!r}: {first['msg']}") from None
    except ValueError as error:
        raise SettingsError(f"{path}: found invalid TOML ({error}), expected tokens") from None
    names = [token.name for token in tokens]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SettingsError(f"{path}: found {twice[0]!r} twice, expected each name once")
    if not all(token.sha256 for token in tokens):
        raise SettingsError(f"{path}: a token has no key 'sha256'")
    return tuple(tokens)
