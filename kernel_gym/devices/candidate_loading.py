"""Loads a candidate into its recorder, which has no compiler: what is in HIP is built elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from kernel_gym.devices.base import Failed, FailureKind
from kernel_gym.devices.budget import EXTENSION_SECONDS, HostBudget
from kernel_gym.devices.built_sources import BuildResult
from kernel_gym.devices.hip_build import (
    compile_extension,
    compile_hip,
    compile_tilelang,
    launcher_outputs,
    tilelang_lacks,
)
from kernel_gym.devices.sim import hip_files
from kernel_gym.protocol import worker as messages
from kernel_gym.protocol.request import Request
from kernel_gym.sandbox.channel import ChannelMessage
from kernel_gym.sandbox.spawn import Family
from kernel_gym.tasks import extension
from kernel_gym.tasks.embedded import uses
from kernel_gym.tasks.task import Task

MAX_BUILDS = 64
"""Kernels that a candidate in TileLang may build in one call."""


class CandidateProcess(Protocol):
    """The process that loads candidates and records their calls."""

    def exchange(self, request: Request, limit: float) -> ChannelMessage | Failed:
        """Sends a request, and returns the answer within a number of seconds."""

    def fail(self, failed: Failed) -> Failed:
        """Keeps and returns a failure after which the recorder cannot be used."""


@dataclass(frozen=True)
class CandidateLoading:
    """How one candidate is loaded and asked.

    Attributes:
        task: What the source solves.
        source: The text.
        recorder: Where it is loaded.
        arch: The architecture that HIP is built for.
        seconds: The limit of a build, and of the recorder's answer to a load.
        budget: The candidate's remaining seconds; None for trusted sources.
        family: Its processes, which share a memory limit with the compiler.
    """

    task: Task
    source: str
    recorder: CandidateProcess
    arch: str
    seconds: float
    budget: HostBudget | None
    family: Family | None

    @property
    def returns(self) -> bool:
        """Whether the candidate returns its outputs; a launcher in HIP gets them."""
        return self.task.language != "hip" or self._is_extension or self._is_extension_file

    @property
    def _is_extension(self) -> bool:
        return extension.is_extension(self.source, self.task.language)

    @property
    def _is_extension_file(self) -> bool:
        return extension.is_extension_file(self.source, self.task.language)

    @property
    def _in_tilelang(self) -> bool:
        return self.task.language == "triton" and uses("tilelang", self.source)

    @property
    def asks_for_times_alone(self) -> bool:
        """Whether host code may ask for times of kernels while it is recorded, and nothing else."""
        return self.task.language == "triton" and not self._in_tilelang and not self._is_extension

    def load(self, language: str | None = None, plain: bool = False) -> Failed | None:
        """Builds and loads the source.

        Args:
            language: The language, if it is not that of the task.
            plain: Whether Triton leaves out optional passes.

        Raises:
            InfraError: The recorder or the compiler could not be started.
        """
        language = language or self.task.written_in
        request = messages.LoadOnSimulator(language, self.task.entry, self.source, plain=plain)
        if self._in_tilelang and (lacks := tilelang_lacks(self.arch)):
            return Failed(FailureKind.COMPILE, lacks)
        if self._is_extension:
            return self._load_extension(replace(request, language="extension"))
        if self._is_extension_file:
            built = self._build_extension(self.source, hip_files.SOURCE)
            if isinstance(built, Failed):
                return built
            assembler, library = built.results
            request = replace(
                request, language="extension file", assembler=assembler, library=library
            )
        elif self.task.language == "hip":
            built = compile_hip(self.source, self.arch, self.seconds, self.budget, self.family)
            if isinstance(built, Failed):
                return built
            assembler, library = built.results
            outputs = launcher_outputs(self.task.problem)
            request = replace(request, outputs=outputs, assembler=assembler, library=library)
        return _failure(self.ask(request, self.seconds))

    def ask(self, request: Request, limit: float) -> ChannelMessage | Failed:
        """Asks the recorder, and builds what TileLang in it asks for, until it answers."""
        answer = self.recorder.exchange(request, limit)
        for _ in range(MAX_BUILDS if self._in_tilelang else 0):
            if isinstance(answer, Failed) or answer.header.get("ask") != "build":
                return answer
            source = answer.header.get("source")
            if not isinstance(source, str):
                return self._fail("a kernel has no source to build")
            built = compile_tilelang(source, self.arch, self.seconds, self.budget, self.family)
            if isinstance(built, Failed):
                return self.recorder.fail(built)  # the recorder still waits
            answer = self.recorder.exchange(messages.TellExtension(*built.results), limit)
        if not self._in_tilelang:
            return answer
        return self._fail(f"a call builds more than {MAX_BUILDS} kernels")

    def _load_extension(self, request: messages.LoadOnSimulator) -> Failed | None:
        """Loads a module and builds the extension that it asks for."""
        asked = self.recorder.exchange(request, self.seconds)
        if isinstance(asked, Failed):
            return asked
        if asked.header.get("ask") != "extension":
            return None  # a module without an extension: its calls show what it is
        source = asked.header.get("source")
        if not isinstance(source, str):
            return self._fail("the extension has no source")
        built = self._build_extension(source, hip_files.INLINE_SOURCE)
        if isinstance(built, Failed):
            return self.recorder.fail(built)  # the recorder still waits
        told = messages.TellExtension(*built.results)
        return _failure(self.recorder.exchange(told, self.seconds))

    def _build_extension(self, source: str, name: str) -> BuildResult | Failed:
        """Builds an extension, for which a candidate has more seconds."""
        seconds, budget = EXTENSION_SECONDS, self.budget
        if budget is not None:
            budget.grant(seconds)
        return compile_extension(source, self.arch, seconds, budget, self.family, name)

    def _fail(self, text: str) -> Failed:
        return self.recorder.fail(Failed(FailureKind.COMPILE, text))


def _failure(answer: ChannelMessage | Failed) -> Failed | None:
    return answer if isinstance(answer, Failed) else None
