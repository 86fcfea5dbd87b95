"""Policies that follow a script: the baseline, files of a folder, a recorded run."""

from __future__ import annotations

import re
from pathlib import Path

from kernel_gym.episodes.episode import Episode
from kernel_gym.policies.base import PolicyError, Scripted
from kernel_gym.storage.run_store import SUFFIX, RunStore, StoreError
from kernel_gym.tasks import Task


class Baseline(Scripted):
    """Submits the kernel that comes with the problem, once."""

    def submit(self, episode: Episode) -> str | None:
        """The problem's own kernel in the task's language."""
        if episode.turns:
            return None
        task = episode.task
        return task.kernel_source


class Reference(Scripted):
    """Submits the PyTorch reference, once: what a policy that writes no kernel earns."""

    def submit(self, episode: Episode) -> str | None:
        """The reference as a module."""
        return None if episode.turns else episode.task.reference_source


class Folder(Scripted):
    """Submits files: `<mode>/<problem>.py`, or the numbered files of `<mode>/<problem>/` in turn.

    HIP sources end in `.hip`. A task without a file gets no submission.

    Args:
        root: The folder.
    """

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise PolicyError(f"{root} is no folder")
        self.root = root

    @classmethod
    def at(cls, path: str) -> Folder:
        """The policy for the folder at a path."""
        return cls(Path(path))

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
        super().__init__(Path(__file__).parent / "examples")


class Recorded(Scripted):
    """Submits what a recorded run submitted, turn by turn.

    Args:
        store: The run.
    """

    def __init__(self, store: RunStore) -> None:
        self.store = store

    @classmethod
    def of(cls, folder: str) -> Recorded:
        """The policy that replays the run in a folder.

        Raises:
            PolicyError: The folder holds no run.
        """
        try:
            return cls(RunStore(Path(folder)))
        except StoreError as error:
            raise PolicyError(f"policy 'replay': {error}") from error

    def submit(self, episode: Episode) -> str | None:
        """The recorded submission of this turn."""
        number = len(episode.turns) + 1
        for record in self.store.turns(episode.task.id, episode.sample):
            if record.turn == number:
                return self.store.source(record)
        return None


def _number(path: Path) -> str:
    """The number that a file name starts with, or nothing."""
    match = re.match(r"\d+", path.name)
    return match.group() if match else ""
