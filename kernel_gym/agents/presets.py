"""The command-line agents that are known by name, and how each is run."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict

from kernel_gym.tasks.names import UnknownName

_FILE = Path(__file__).parent / "presets.toml"
PROMPT = (
    "Optimise the GPU kernel in this folder. Read AGENTS.md and TASK.md first, edit {kernel}, and "
    "submit it with ./check until it is right and as fast as you can make it. Then stop."
)
"""The text that an agent gets in the variable KERNEL_GYM_PROMPT."""


def _pattern(text: str) -> str:
    if text and re.compile(text).groups != 1:
        raise ValueError(f"found {text!r}, expected a regular expression with one group")
    return text


class Preset(BaseModel):
    """How an agent is run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: str
    """A command for /bin/sh in the workspace."""
    network: bool = False
    variables: tuple[str, ...] = ()
    """Variables of the environment that it gets."""
    read: tuple[str, ...] = ()
    """Folders that it may read."""
    tokens: Annotated[str, AfterValidator(_pattern)] = ""
    """A pattern for counts of tokens in its output."""

    def environment(self) -> dict[str, str]:
        """The variables that are set here."""
        return {name: os.environ[name] for name in self.variables if name in os.environ}

    def folders(self) -> tuple[str, ...]:
        """The readable folders that exist, as absolute paths."""
        paths = (os.path.realpath(os.path.expanduser(path)) for path in self.read)
        return tuple(path for path in paths if os.path.isdir(path))


def presets() -> dict[str, Preset]:
    """The presets by name."""
    content = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    return {name: Preset.model_validate(entry) for name, entry in content.items()}


def get_preset(name: str) -> Preset:
    """A preset by name.

    Raises:
        UnknownName: There is none; the message lists similar names.
    """
    known = presets()
    if name not in known:
        raise UnknownName("preset", name, known)
    return known[name]
