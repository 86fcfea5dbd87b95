"""One program of others that is run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Program:
    """One program of a suite.

    Attributes:
        suite: Name of the suite.
        name: Name within the suite.
        folder: Where its commands run.
        command: The words that run it.
        build: The words that build it first.
        has_cases: Whether the command is pytest with the plugin `cases`.
        is_long: Whether it has the time of several programs, as a test file and a tutorial with
            its series of measurements have.
        needs_work: Whether it passes only if the GPU has computed: tests of calls do not.
        candidate: The kind of the kernel that its harness judges, for counts by kind.
        device: The simulated device that it needs; empty: the one that the command names.
        is_copied: Whether it runs in a copy of its folder, so that each run starts afresh.
        replaced: Files that take the place of files in that copy, by their names there.
        paths: Further folders for Python's modules.
        variables: Environment variables.
    """

    suite: str
    name: str
    folder: Path
    command: tuple[str, ...]
    build: tuple[str, ...] = ()
    has_cases: bool = False
    is_long: bool = False
    needs_work: bool = True
    candidate: str = ""
    device: str = ""
    is_copied: bool = False
    replaced: Mapping[str, Path] = field(default_factory=dict)
    paths: tuple[Path, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
