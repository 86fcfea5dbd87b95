"""Builds a HIP source for a real GPU. Results for trusted sources are cached."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from kernel_gym.devices.base import Failed, InfraError
from kernel_gym.devices.budget import HostBudget
from kernel_gym.devices.gpu.toolkit import toolkit_folders
from kernel_gym.devices.gpu.vendors import Vendor, find_compiler
from kernel_gym.devices.hip_build import BuildRecipe, compile_source
from kernel_gym.sandbox.spawn import Family

LIBRARY = "candidate.so"
GATE = Path(__file__).with_name("launch_gate.cpp")


@dataclass(frozen=True)
class GpuLibrary:
    """A shared object, and what the compiler printed about its kernels."""

    content: bytes
    log: str


@dataclass(frozen=True)
class GpuCompiler:
    """The vendor's compiler for one architecture.

    Args:
        vendor: The vendor of the GPU.
        arch: The compiler's name of the architecture.
        cache: A folder for compiled objects; empty for candidates, which are not cached.
        limit: Seconds for one source.
        family: The processes that share a memory limit with the compiler.
    """

    vendor: Vendor
    arch: str
    cache: str
    limit: float
    family: Family | None

    def build(self, source: str, budget: HostBudget | None) -> GpuLibrary | Failed:
        """Builds a source, or loads the result from the cache.

        Raises:
            InfraError: There is no compiler, or its process could not be started.
        """
        path = find_compiler(self.vendor)
        if path is None:
            raise InfraError(f"HIP needs {self.vendor.compiler}, which is not installed")
        command = self.vendor.compile_command(path, self.arch)
        key = hashlib.sha256("\0".join((source, *command)).encode()).hexdigest()[:24]
        cached = self._cached(key)
        if cached is not None:
            return cached
        name = f"candidate{self.vendor.suffix}"
        files = {name: source, GATE.name: GATE.read_text(encoding="utf-8")}
        compile_all = [*command, "-o", LIBRARY, name, GATE.name]
        toolkit = toolkit_folders(tuple(command), self.vendor.suffix)
        recipe = BuildRecipe(files, [compile_all], [LIBRARY], toolkit)
        built = compile_source(recipe, self.limit, budget, self.family)
        if isinstance(built, Failed):
            return built
        library = GpuLibrary(built.results[0], built.logs[0])
        self._store(key, library)
        return library

    def _cached(self, key: str) -> GpuLibrary | None:
        if not self.cache:
            return None
        library, log = (Path(self.cache, key + end) for end in (".so", ".log"))
        if not (library.exists() and log.exists()):
            return None
        return GpuLibrary(library.read_bytes(), log.read_text(encoding="utf-8"))

    def _store(self, key: str, library: GpuLibrary) -> None:
        if not self.cache:
            return
        Path(self.cache, f"{key}.log").write_text(library.log, encoding="utf-8")
        fresh = Path(self.cache, f"{key}.so.{os.getpid()}")
        fresh.write_bytes(library.content)
        fresh.replace(Path(self.cache, f"{key}.so"))
