"""The interface of a reader of a suite, and the tasks that it finds in a checkout."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from kernel_gym.errors import InputError
from kernel_gym.tasks.inside import LeadsOutError, read_inside
from kernel_gym.tasks.names import Mode
from kernel_gym.tasks.problem import Problem

if TYPE_CHECKING:
    from kernel_gym.imports.recorded.stated import StatedWorkload

LFS_POINTER = b"version https://git-lfs.github.com/spec/"


class CheckoutError(InputError, ValueError):
    """A folder is no checkout of a suite, or a file of it cannot be used."""


class UnsupportedTask(Exception):
    """A task of a suite cannot be imported. The text is the reason, which tables count."""


class NoCallError(UnsupportedTask):
    """The tests of a task make no call of its functions that can be made again."""


@dataclass(frozen=True)
class FoundTask:
    """A task that a reader can try to load.

    Attributes:
        name: Unique in the suite; the task's id is `suite/name`.
        category: The suite's own category.
        mode: What a candidate starts from and what it is written in.
        files: The files that define it, as paths in the checkout with `/`.
        details: What the reader needs to load it again: JSON values.
    """

    name: str
    category: str
    mode: Mode
    files: tuple[str, ...]
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Unsupported:
    """A task that is in the checkout and cannot be imported, with the reason."""

    name: str
    category: str
    reason: str


class ConfinedRunner(Protocol):
    """Runs code of a suite in a confined worker with the device: importing has one."""

    @property
    def device(self) -> str:
        """The name of the device, such as `sim:gfx942`."""

    def run(
        self, program: str, files: Mapping[str, bytes], options: Mapping[str, object]
    ) -> dict[str, object]:
        """Runs one of the programs of `kernel_gym.worker` on files of a suite.

        Args:
            program: The program's name.
            files: The files that it sees, by relative path.
            options: JSON values for it.

        Returns:
            The program's answer, which may be forged: parse it.

        Raises:
            UnsupportedTask: It ended without an answer, or the device cannot do what it needs.
        """

    def trace(
        self,
        files: Mapping[str, str],
        target: str,
        inputs: str,
        init: str | None,
        entry: str,
        points: Sequence[Mapping[str, int]] = (),
        called: str = "",
    ) -> dict[str, object]:
        """Traces a module at many sizes; see `kernel_gym.imports.authoring`.

        Args:
            files: The texts that it needs, by relative path.
            target: `file:name` of the module class or function.
            inputs: `file:name` of the function that makes its inputs.
            init: `file:name` of the function that returns the arguments of the class, or None.
            entry: The name of the problem and of the function that a candidate defines.
            points: Sizes that the suite states, for workloads on GPUs.
            called: The function of a candidate with the target's parameters, for the adapter.

        Returns:
            `text`, that of a `problem.py`, `adapter` and `notes`.

        Raises:
            UnsupportedTask: It cannot become a task.
        """

    def state(
        self, problem: Problem, mode: Mode, recorded: Sequence[Mapping[str, int]]
    ) -> list[StatedWorkload]:
        """States the workloads of a problem of recorded calls.

        Args:
            problem: The problem without workloads.
            mode: The mode of its task.
            recorded: The dimensions of recorded calls.

        Raises:
            UnsupportedTask: The suite's own code answers none of them.
        """


class Reader(Protocol):
    """Reads checkouts of one suite."""

    @property
    def suite(self) -> str:
        """The suite's name, such as `tritonbench-g`: lower case, digits and `-`."""

    def detect(self, checkout: Path) -> bool:
        """Whether a folder is a checkout of this suite, by the files that mark it."""

    def entries(self, checkout: Path) -> Iterator[FoundTask | Unsupported]:
        """Yields every task of a checkout. A file that cannot be read is `Unsupported`."""

    def prepare(self, checkout: Path, found: FoundTask, bench: ConfinedRunner) -> dict[str, object]:
        """Runs what the problem needs to know about a task, such as its recorded calls.

        Returns:
            JSON values that are stored beside the manifest and given to `problem`.

        Raises:
            UnsupportedTask: It cannot be imported.
        """

    def problem(self, checkout: Path, found: FoundTask, data: Mapping[str, object]) -> Problem:
        """Makes the problem from the task's files and what `prepare` returned.

        Raises:
            UnsupportedTask: It cannot be imported.
        """


def read_text(checkout: Path, name: str) -> str:
    """Returns the text of a file of a checkout.

    Raises:
        CheckoutError: It is missing, a Git LFS pointer, or no UTF-8.
    """
    return _decoded(name, read_bytes(checkout, name))


def read_bytes(checkout: Path, name: str) -> bytes:
    """Returns the bytes of a file of a checkout.

    Raises:
        CheckoutError: It is missing, outside of the checkout, or a Git LFS pointer.
    """
    try:
        content = read_inside(checkout, checkout / name)
    except LeadsOutError:
        raise CheckoutError(f"{name}: leads out of the checkout") from None
    except (OSError, RuntimeError) as error:
        raise CheckoutError(
            f"{name}: cannot be read ({getattr(error, 'strerror', error)})"
        ) from error
    if content.startswith(LFS_POINTER):
        raise CheckoutError(f"{name}: found a Git LFS pointer, expected the file: run git lfs pull")
    return content


def hashes(checkout: Path, files: tuple[str, ...]) -> dict[str, str]:
    """Returns the SHA-256 of files of a checkout, by path.

    Raises:
        CheckoutError: A file cannot be read.
    """
    return {name: hashlib.sha256(read_bytes(checkout, name)).hexdigest() for name in files}


def _decoded(name: str, content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CheckoutError(f"{name}: found no UTF-8 text") from error
