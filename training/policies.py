"""Policies: what to submit next. A policy is a class with one method.

To add one, write the class and name it in :func:`make_policy`.
"""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import Protocol

import kernel_gym
from kernel_gym.store import SUFFIX
from kernel_gym.tasks import Task
from kernel_gym.training.episode import Episode

KNOWN = ("baseline", "examples", "folder:PATH")
_CANDIDATES = Path("examples") / "candidates"


class PolicyError(ValueError):
    """A policy cannot be made from its name; the message says why."""


class Policy(Protocol):
    """Anything that writes kernels."""

    def submit(self, episode: Episode, /) -> str | None:
        """The next submission of an episode, or None to end it."""
        ...


class Baseline:
    """Submits the kernel that comes with the problem, once."""

    def submit(self, episode: Episode) -> str | None:
        """The problem's own kernel in the task's language."""
        if episode.turns:
            return None
        task = episode.task
        return task.kernel_source


class Folder:
    """Submits files: `<mode>/<problem>.py`, or the numbered files of `<mode>/<problem>/` in turn.

    HIP sources end in `.hip`. A task without a file gets no submission.

    Args:
        root: The folder.
    """

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise PolicyError(f"{root} is no folder")
        self.root = root

    def submit(self, episode: Episode) -> str | None:
        """The file for this turn."""
        files = self.files(episode.task)
        if len(episode.turns) >= len(files):
            return None
        return files[len(episode.turns)].read_text(encoding="utf-8")

    def files(self, task: Task) -> list[Path]:
        """The files for a task, in the order in which they are submitted."""
        suffix = SUFFIX[task.language]
        single = self.root / f"{task.id}{suffix}"
        if single.is_file():
            return [single]
        numbered = [path for path in (self.root / task.id).glob(f"*{suffix}") if _number(path)]
        return sorted(numbered, key=lambda path: (int(_number(path)), path.name))


class Examples(Folder):
    """Submits three kernels a task: a wrong one, one for the shapes shown only, and a good one."""

    def __init__(self) -> None:
        checkout = Path(kernel_gym.__file__).parent.parent
        root = checkout / _CANDIDATES
        if not root.is_dir():
            raise PolicyError(
                f"policy 'examples' needs a source checkout: {_CANDIDATES} is missing"
            )
        super().__init__(root)


def make_policy(name: str) -> Policy:
    """The policy of that name.

    Args:
        name: `baseline`, `examples` or `folder:PATH`.

    Returns:
        The policy.

    Raises:
        PolicyError: The name is unknown, or its folder does not exist.
    """
    kind, _, argument = name.partition(":")
    if kind == "folder" and argument:
        return Folder(Path(argument))
    if name == "baseline":
        return Baseline()
    if name == "examples":
        return Examples()
    near = difflib.get_close_matches(name, KNOWN, n=2, cutoff=0.4)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(KNOWN)}"
    raise PolicyError(f"unknown policy {name!r}; {hint}")


def _number(path: Path) -> str:
    """The number that a file name starts with, or nothing."""
    match = re.match(r"\d+", path.name)
    return match.group() if match else ""
