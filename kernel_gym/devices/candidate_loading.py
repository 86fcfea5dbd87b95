"""Loads a candidate into its recorder, which has no compiler: what is in HIP is built elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from kernel_gym.devices.base import Failed, FailureKind
from kernel_gym.devices.budget import EXTENSION_SECONDS, HostBudget
from kernel_gym.devices.hip_build import compile_extension, compile_hip, launcher_outputs
from kernel_gym.protocol import worker as messages
from kernel_gym.protocol.request import Request
from kernel_gym.sandbox.channel import ChannelMessage
from kernel_gym.sandbox.spawn import Family
from kernel_gym.tasks import extension
from kernel_gym.tasks.task import Task


class Recorder(Protocol):
    """The process that loads candidates and records their calls."""

    def exchange(self, request: Request, limit: float) -> ChannelMessage | Failed:
        """Sends a request, and returns the answer within a number of seconds."""

    def fail(self, failed: Failed) -> Failed:
        """Keeps and returns a failure after which the recorder cannot be used."""


def returns_outputs(task: Task, source: str) -> bool:
    """Whether a candidate returns its outputs; a launcher in HIP gets them."""
    return task.language != "hip" or extension.is_extension(source, task.language)


@dataclass(frozen=True)
class CandidateLoading:
    """How candidates of a session are loaded.

    Attributes:
        recorder: Where they are loaded.
        arch: The architecture that HIP is built for.
        seconds: The limit of a build, and of an answer of the recorder.
        budget: The candidate's remaining seconds; None for trusted sources.
        family: Its processes, which share a memory limit with the compiler.
    """

    recorder: Recorder
    arch: str
    seconds: float
    budget: HostBudget | None
    family: Family | None

    def load(
        self, task: Task, source: str, language: str | None = None, plain: bool = False
    ) -> Failed | None:
        """Builds and loads a source.

        Args:
            task: What the source solves.
            source: The text.
            language: The language, if it is not that of the task.
            plain: Whether Triton leaves out optional passes.

        Raises:
            InfraError: The recorder or the compiler could not be started.
        """
        language = language or task.language
        request = messages.LoadOnSimulator(language, task.entry, source, plain=plain)
        if extension.is_extension(source, task.language):
            return self._load_extension(replace(request, language="extension"))
        if task.language == "hip":
            built = compile_hip(source, self.arch, self.seconds, self.budget, self.family)
            if isinstance(built, Failed):
                return built
            assembler, library = built.results
            outputs = launcher_outputs(task.problem)
            request = replace(request, outputs=outputs, assembler=assembler, library=library)
        return _failure(self.recorder.exchange(request, self.seconds))

    def _load_extension(self, request: messages.LoadOnSimulator) -> Failed | None:
        """Loads a module and builds the extension that it asks for."""
        asked = self.recorder.exchange(request, self.seconds)
        if isinstance(asked, Failed):
            return asked
        if asked.header.get("ask") != "extension":
            return None  # a module without an extension: its calls show what it is
        source = asked.header.get("source")
        if not isinstance(source, str):
            failed = Failed(FailureKind.COMPILE, "the extension has no source")
            return self.recorder.fail(failed)
        if self.budget is not None:
            self.budget.grant(EXTENSION_SECONDS)
        built = compile_extension(source, self.arch, EXTENSION_SECONDS, self.budget, self.family)
        if isinstance(built, Failed):
            return self.recorder.fail(built)  # the recorder still waits
        told = messages.TellExtension(*built.results)
        return _failure(self.recorder.exchange(told, self.seconds))


def _failure(answer: ChannelMessage | Failed) -> Failed | None:
    return answer if isinstance(answer, Failed) else None
