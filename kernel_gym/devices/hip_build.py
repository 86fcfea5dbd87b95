"""Builds a HIP source in a separate process that sees only the compiler."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kernel_gym.devices.answers import parse_failure
from kernel_gym.devices.base import Failed, FailureKind, InfraError
from kernel_gym.devices.budget import GUARD_SECONDS, RESERVE, HostBudget, Spent, inner_pid
from kernel_gym.devices.built_sources import BuildResult, BuiltSources, key_of
from kernel_gym.devices.failures import describe_exit
from kernel_gym.devices.meter import Meter
from kernel_gym.devices.sim import hip_files as hip
from kernel_gym.devices.sim.precompiled import (
    PrecompiledHeaders,
    is_prepared,
    precompiled_for,
    prepare,
    speaks_of_headers,
)
from kernel_gym.devices.sim.tilelang_headers import (
    TILELANG_BEGINNING,
    templates,
    with_tilelang,
)
from kernel_gym.devices.sim.toolchain import HipToolchain, hip_toolchain
from kernel_gym.devices.sim.torch_headers import EXTENSION_BEGINNING, with_torch
from kernel_gym.extras import missing_extra
from kernel_gym.protocol.request import encode
from kernel_gym.protocol.worker import EXTENSION_MODULE, BuildHip
from kernel_gym.sandbox import failures
from kernel_gym.sandbox.channel import (
    ChannelClosed,
    ChannelError,
    ChannelMessage,
    ChannelTimeout,
)
from kernel_gym.sandbox.confine import WorkerLimits
from kernel_gym.sandbox.spawn import Child, Family, TemplateError, shared_template
from kernel_gym.tasks.problem import Problem

LIMITS = WorkerLimits(
    memory=1 << 30, file_size=32 << 20, home_size=256 << 20, processes=64, cpu_seconds=120
)
"""Limits of a compiler. Clang takes 0.2 GiB for sources of a few hundred lines."""
HEADER_LIMITS = WorkerLimits(
    memory=4 << 30, file_size=240 << 20, home_size=1 << 30, processes=64, cpu_seconds=600
)
"""Limits of a compiler that precompiles headers, which are trusted. PyTorch's take a minute."""
SYSTEM_FOLDERS = (
    *("/usr/bin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/include"),
    *("/bin", "/lib", "/lib32", "/lib64", "/etc/alternatives", "/etc/ld.so.cache"),
)
"""Folders of the system with compilers, libraries and headers."""

PARTS = ("bin", "lib", "lib64", "libexec", "include", "amdgcn", "llvm", "nvvm", "targets")
"""Parts of a compiler's installation, in the folder above its own."""


@dataclass(frozen=True)
class BuildRecipe:
    """How a source is built: texts by file name, commands, and the files that they write."""

    files: Mapping[str, str]
    commands: Sequence[Sequence[str]]
    results: Sequence[str]
    folders: Sequence[str] = ()
    """Folders that the compiler reads besides those that its place and options tell."""
    decides: Callable[[str], bool] = lambda log: True
    """Whether messages of a failed build are those that its author gets."""
    in_turn: bool = False
    """Whether a command runs only if those before it succeeded; else all run at a time."""
    instead: Sequence[Sequence[str]] = ()
    """Commands whose messages the author gets where those of `commands` do not decide."""


_BUILT_SOURCES = BuiltSources()


def compile_source(
    recipe: BuildRecipe,
    limit: float,
    budget: HostBudget | None = None,
    family: Family | None = None,
    kept: BuiltSources | None = None,
    limits: WorkerLimits = LIMITS,
) -> BuildResult | Failed:
    """Builds a source.

    Args:
        recipe: Files and commands.
        limit: Host seconds, see :class:`~kernel_gym.devices.meter.Meter`.
        budget: The candidate's remaining seconds; None for trusted sources. It is charged for a
            kept result, too.
        family: The candidate's processes, which share a memory limit with the compiler.
        kept: Earlier results, which are used and added to; None builds in any case.
        limits: What the compiler may use.

    Raises:
        InfraError: The process could not be started, or the machine is overloaded.
    """
    key = key_of(recipe.files, recipe.commands, recipe.results, recipe.folders, recipe.instead)
    known = kept.get(key) if kept is not None else None
    if known is not None and (budget is None or budget.host - known[1].host >= RESERVE):
        if budget is not None:
            budget.draw(known[1])
        return known[0]
    options: dict[str, object] = {"folders": [*folders(recipe.commands), *recipe.folders]}
    child: Child | None = None
    try:
        child = shared_template().fork(
            "compiler", [], options, limits, family=family, buffers=len(recipe.results)
        )
        child.channel.recv(GUARD_SECONDS)
    except (TemplateError, ChannelError) as error:
        if child is not None:
            child.close()
        raise InfraError(f"the compiler's process could not be started: {error}") from error
    meter = Meter(inner_pid(child.pid), None, limit, budget)
    built: BuildResult | Failed | None = None
    try:
        built = _ask(child, recipe, meter, limit)
        return built
    finally:
        spent = meter.end()
        child.close()
        if budget is not None:
            budget.draw(spent)
        if kept is not None and isinstance(built, BuildResult):
            kept.keep(key, built, Spent(host=spent.host))


def compile_hip(
    source: str, arch: str, limit: float, budget: HostBudget | None, family: Family | None
) -> BuildResult | Failed:
    """Builds a HIP source for a simulated GPU: assembler text, and the object of the host side.

    Raises:
        InfraError: A part of the toolchain is missing, or the process could not be started.
    """
    chain = _toolchain(arch)
    commands = hip.commands({"device": chain.device, "host": chain.host})
    recipe = BuildRecipe(hip.files(source), commands, (hip.ASSEMBLER, hip.LIBRARY))
    if headers := precompiled_for(chain, source, _build_trusted):
        recipe = replace(
            recipe,
            commands=headers.commands(),
            folders=(str(headers.folder),),
            decides=lambda log: not speaks_of_headers(log),
            in_turn=True,  # an error of the device side ends a build that is short anyway
            instead=commands,
        )
    return compile_source(recipe, limit, budget, family, _BUILT_SOURCES)


def compile_extension(
    source: str,
    arch: str,
    limit: float,
    budget: HostBudget | None,
    family: Family | None,
    name: str = hip.INLINE_SOURCE,
) -> BuildResult | Failed:
    """Builds a PyTorch extension in HIP, with the results of `compile_hip`.

    The library is a Python module. PyTorch's and HIP's headers stand before the source, and in a
    candidate's own file the name of the module.

    Raises:
        InfraError: A part of the toolchain is missing, or the headers do not compile.
    """
    headers = prepare_extension_headers(arch)
    begin = "".join(f"#include <{header}>\n" for header in EXTENSION_BEGINNING)
    if name == hip.SOURCE:
        begin += f"#define TORCH_EXTENSION_NAME {EXTENSION_MODULE}\n"
    recipe = BuildRecipe(
        hip.files(f"{begin}#line 1\n{source}", name),
        headers.commands(name),
        (hip.ASSEMBLER, hip.LIBRARY),
        (str(headers.folder),),
        in_turn=True,
    )
    return compile_source(recipe, limit, budget, family, _BUILT_SOURCES)


def compile_tilelang(
    source: str, arch: str, limit: float, budget: HostBudget | None, family: Family | None
) -> BuildResult | Failed:
    """Builds the HIP that TileLang has written, with the results of `compile_hip`.

    TileLang's templates are precompiled, as HIP's headers are.

    Raises:
        InfraError: `tilelang_lacks` has an answer, or the templates do not compile.
    """
    folder = templates()
    if folder is None:
        raise InfraError(tilelang_lacks(arch))
    chain = with_tilelang(_toolchain(arch), folder)
    headers = prepare(chain, TILELANG_BEGINNING, _build_trusted)
    if headers is None:
        raise InfraError("TileLang's templates do not compile with HIP's headers")
    recipe = BuildRecipe(
        hip.files(source, hip.TILELANG_SOURCE),
        headers.commands(hip.TILELANG_SOURCE),
        (hip.ASSEMBLER, hip.LIBRARY),
        (str(headers.folder),),
        in_turn=True,
    )
    return compile_source(recipe, limit, budget, family, _BUILT_SOURCES)


def tilelang_lacks(arch: str) -> str:
    """Returns one line with what candidates in TileLang lack on this machine, and the cure.

    Args:
        arch: The simulated GPU.

    Returns:
        An empty text if nothing is missing.
    """
    if templates() is None:
        return missing_extra(ModuleNotFoundError(name="tilelang")) or ""
    chain = hip_toolchain(arch)
    if isinstance(chain, HipToolchain):
        return ""
    return f"TileLang writes HIP, which is not built here: {chain.problem}; {chain.fix}"


def prepare_extension_headers(arch: str) -> PrecompiledHeaders:
    """Returns PyTorch's precompiled headers for a simulated GPU; makes them at their first use.

    That takes about two processor minutes.

    Raises:
        InfraError: A part of the toolchain is missing, or the headers do not compile.
    """
    headers = prepare(with_torch(_toolchain(arch)), EXTENSION_BEGINNING, _build_trusted)
    if headers is None:
        raise InfraError("PyTorch's headers do not compile with HIP's: run kernel-gym doctor")
    return headers


def has_extension_headers(arch: str) -> bool:
    """Whether PyTorch's precompiled headers for a simulated GPU are there."""
    chain = hip_toolchain(arch)
    return isinstance(chain, HipToolchain) and is_prepared(with_torch(chain), EXTENSION_BEGINNING)


def _build_trusted(commands: list[list[str]], results: Sequence[str]) -> Sequence[bytes] | None:
    """Builds files of this project; None if the compiler fails."""
    recipe = BuildRecipe({}, commands, results)
    built = compile_source(recipe, GUARD_SECONDS, limits=HEADER_LIMITS)
    return built.results if isinstance(built, BuildResult) else None


def launcher_outputs(problem: Problem) -> list[int]:
    """Returns which arguments of a C launcher are outputs: they follow the inputs."""
    return [*range(len(problem.args), len(problem.args) + len(problem.outputs))]


def _toolchain(arch: str) -> HipToolchain:
    """Finds what the judge needs to build HIP candidates.

    Raises:
        InfraError: A part is missing. No candidate is to blame for that.
    """
    toolchain = hip_toolchain(arch)
    if not isinstance(toolchain, HipToolchain):
        raise InfraError(f"{toolchain.problem}; install it: {toolchain.fix}")
    if importlib.util.find_spec("kernel_gym.simulated_rocm._hip_runtime") is None:
        raise InfraError("kernel-gym's HIP runtime is not built; install the package again")
    return toolchain


def folders(commands: Sequence[Sequence[str]]) -> list[str]:
    """Returns the folders that a compiler must see: the system's, its own, and those in options."""
    named = [word.partition("=")[2] or word for command in commands for word in command]
    paths = [word.removeprefix("-I") for word in named if word.removeprefix("-I").startswith("/")]
    compilers = {command[0] for command in commands}
    for path in (*compilers, *map(os.path.realpath, compilers)):
        paths += [str(Path(path).parents[1] / part) for part in PARTS]
    paths += [os.path.realpath(path) for path in paths]
    fit = [path for path in paths if len(Path(path).parts) > 2]
    return list(filter(os.path.exists, dict.fromkeys((*SYSTEM_FOLDERS, *fit))))


def _ask(child: Child, recipe: BuildRecipe, meter: Meter, limit: float) -> BuildResult | Failed:
    answer = _built(child, recipe, meter, limit)
    if recipe.instead and _is_undecided(answer, recipe):
        plain = replace(recipe, commands=recipe.instead, in_turn=False)
        answer = _built(child, plain, meter, limit)
    if isinstance(answer, Failed):
        return answer
    return _read(answer.header, answer.buffers, len(recipe.results))


def _built(
    child: Child, recipe: BuildRecipe, meter: Meter, limit: float
) -> ChannelMessage | Failed:
    request = BuildHip(
        dict(recipe.files),
        [list(command) for command in recipe.commands],
        list(recipe.results),
        recipe.in_turn,
    )
    try:
        return child.channel.request(encode(request)[0], timeout=meter.patience)
    except ChannelTimeout:
        return Failed(FailureKind.TIMEOUT, f"load: no answer within {limit:.0f} s of host time")
    except ChannelClosed:
        return Failed(FailureKind.COMPILE, f"the compiler ended: {describe_exit(child)}")
    except ChannelError as error:
        return Failed(FailureKind.COMPILE, f"the compiler broke the protocol: {error}")


def _is_undecided(answer: ChannelMessage | Failed, recipe: BuildRecipe) -> bool:
    """Whether a build failed with messages that do not decide. Malformed ones are read later."""
    if isinstance(answer, Failed) or answer.header.get("failed") is not True:
        return False
    logs = answer.header.get("logs")
    return isinstance(logs, list) and not all(recipe.decides(str(log)) for log in logs)


def _read(
    header: dict[str, object], buffers: tuple[bytes, ...], expected: int
) -> BuildResult | Failed:
    """Returns the compiler's answer. Untrusted, as the source is hostile."""
    logs = header.get("logs")
    if not isinstance(logs, list) or not all(isinstance(log, str) for log in logs):
        return Failed(FailureKind.COMPILE, "the compiler broke the protocol")
    if len(buffers) == expected and header.get("failed") is False:
        return BuildResult(tuple(logs), buffers)
    text = next((log for log in logs if "error:" in log), "\n".join(logs))
    return parse_failure(failures.describe(failures.BuildError(hip.first_error(text))))
