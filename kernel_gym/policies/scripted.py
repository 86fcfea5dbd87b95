"""Policies that follow a script: baseline, reference, files of a folder, a recorded run."""

from __future__ import annotations

import re
from pathlib import Path

from kernel_gym.episodes.episode import Episode
from kernel_gym.errors import InputError
from kernel_gym.imports.predictions import prediction_for, read_predictions
from kernel_gym.policies.base import PolicyError, Scripted
from kernel_gym.policies.registry import register_policy
from kernel_gym.storage.json_lines import StoreError
from kernel_gym.storage.run_store import SUFFIX, RunStore
from kernel_gym.tasks import Task
from kernel_gym.tasks.names import imported_ids


@register_policy("baseline")
class Baseline(Scripted):
    """Submits the problem's own kernel once."""

    def submit(self, episode: Episode) -> str | None:
        """The problem's own kernel in the task's language."""
        return None if episode.turns else episode.task.kernel_source


@register_policy("reference")
class Reference(Scripted):
    """Submits the PyTorch reference once. It shows what a policy that writes no kernel earns."""

    def submit(self, episode: Episode) -> str | None:
        """The source of the reference."""
        return None if episode.turns else episode.task.reference_source


@register_policy("folder")
class Folder(Scripted):
    """Submits `<mode>/<problem>.py`, or the numbered files of `<mode>/<problem>/` in order.

    HIP sources end in `.hip`. A task without a file gets no submission.

    Args:
        path: The folder.

    Raises:
        PolicyError: The path is not a folder.
    """

    def __init__(self, path: Path) -> None:
        if not path.is_dir():
            raise PolicyError(f"{path} is no folder")
        self.root = path

    def submit(self, episode: Episode) -> str | None:
        """The contents of the file for this turn."""
        files = self.files(episode.task)
        if len(episode.turns) >= len(files):
            return None
        return files[len(episode.turns)].read_text(encoding="utf-8")

    def files(self, task: Task) -> list[Path]:
        """The files for a task, in the order of submission."""
        suffix = SUFFIX[task.language]
        single = self.root / f"{task.id}{suffix}"
        if single.is_file():
            return [single]
        numbered = [path for path in (self.root / task.id).glob(f"*{suffix}") if _number(path)]
        return sorted(numbered, key=lambda path: (int(_number(path)), path.name))


@register_policy("examples")
class Examples(Folder):
    """Submits three kernels per task: a wrong one, one for train shapes only, and a good one."""

    def __init__(self) -> None:
        super().__init__(Path(__file__).parent / "examples")


class Recorded(Scripted):
    """Submits the sources of a recorded run, turn by turn.

    Args:
        store: The run.
    """

    def __init__(self, store: RunStore) -> None:
        self.store = store

    def submit(self, episode: Episode) -> str | None:
        """The recorded submission of this turn."""
        number = len(episode.turns) + 1
        for record in self.store.turns(episode.task.id, episode.sample):
            if record.turn == number:
                return self.store.source(record)
        return None


@register_policy("predictions")
class Predictions(Scripted):
    """Submits the predictions of a file for tasks of imported suites, in their formats.

    Each sample of a task submits another prediction, if there are several.

    Args:
        path: What :func:`~kernel_gym.imports.predictions.read_predictions` reads.

    Raises:
        PolicyError: The file cannot be used, or fits no imported task.
    """

    def __init__(self, path: Path) -> None:
        try:
            self.sources = read_predictions(path)
        except InputError as error:
            raise PolicyError(str(error)) from error
        if not any(prediction_for(self.sources, name) for name in imported_ids()):
            first = ", ".join(list(self.sources)[:3])
            raise PolicyError(
                f"{path}: found predictions for {first}, and no imported task of them"
            )

    def submit(self, episode: Episode) -> str | None:
        """The prediction for the task; none for a task of our own."""
        if episode.turns or not episode.task.problem.suite:
            return None
        return prediction_for(self.sources, episode.task.id, episode.sample)


@register_policy("replay")
def replay_policy(run: Path) -> Recorded:
    """The policy that submits what the run in a folder submitted.

    Raises:
        PolicyError: The folder has no run.
    """
    try:
        return Recorded(RunStore(run))
    except StoreError as error:
        raise PolicyError(f"policy 'replay': {error}") from error


def _number(path: Path) -> str:
    """The number at the beginning of a file name, or ""."""
    match = re.match(r"\d+", path.name)
    return match.group() if match else ""
