"""`hipcc` where ROCm is not installed: clang with the options that it needs for HIP.

All words go to clang. Added are the target, the device libraries, HIP's headers and the runtime.
C++ files are HIP sources, as with ROCm's hipcc.
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from kernel_gym.devices.sim.toolchain import HipToolchain, hip_toolchain
from kernel_gym.sim.asm.targets import TARGETS
from kernel_gym.sim.llvm_packages import CLANG_FOLDER
from kernel_gym.simulated_rocm.folders import (
    NO_RUNTIME,
    compiler_folder,
    device_library_folder,
    header_folder,
    library_folder,
)
from kernel_gym.simulated_rocm.settings import DEFAULT, DEVICE, PREFIX

_SOURCES = (".hip", ".cpp", ".cc", ".cxx", ".cu", ".C", ".c++")
_NO_LINK = ("-c", "-S", "-E", "-M", "-MM", "-fsyntax-only", "--genco", "--cuda-device-only")
_NO_COMPILE = ("--version", "--help", "-dumpmachine", "-dumpversion", "-print-search-dirs")
_WITH_VALUE = (
    *("-o", "-I", "-D", "-U", "-L", "-l", "-include", "-isystem", "-idirafter", "-iquote"),
    *("-MF", "-MT", "-MQ", "-Xclang", "-Xlinker", "-mllvm", "-arch", "-target", "-Xarch_device"),
    *("-Xarch_host", "-Xoffload-linker", "-imacros", "-T", "-u", "-z", "-framework", "-rpath"),
)
_DROPPED = ("-hc", "--amdgpu-target", "-use_fast_math", "--use-staticlib", "--use-sharedlib")
_SEARCHES, _SYSTEM = ("-I", "-isystem"), "/usr/include"
"""HIP's headers may lie there. The compiler must not search that folder before those of C++."""
OLDEST_MAJOR = 5
"""The major version of HIP that the device library is of."""
HEADERS = Path(__file__).with_name("include")
"""Headers of later HIP versions."""
APPENDED = ("HIPCC_COMPILE_FLAGS_APPEND", "HIPCC_LINK_FLAGS_APPEND")
"""Variables with further words for compiling and for linking, which ROCm's hipcc reads too."""


def main() -> int:
    """Runs clang; returns its exit status."""
    words = with_appended(sys.argv[1:], os.environ)
    chain = hip_toolchain(arch := _arch(words), os.environ.get(CLANG_FOLDER, ""))
    if not isinstance(chain, HipToolchain):
        print(f"hipcc of kernel-gym: {chain.problem}; install it: {chain.fix}", file=sys.stderr)
        return 1
    folder = library_folder()
    if folder is None:
        print(f"hipcc of kernel-gym: {NO_RUNTIME}", file=sys.stderr)
        return 1
    return subprocess.run(command(words, chain, arch, folder)).returncode


def with_appended(words: Sequence[str], variables: Mapping[str, str]) -> list[str]:
    """Returns the words of a call, and after them those that variables append.

    Args:
        words: The words after `hipcc`.
        variables: The environment.

    Example:
        >>> with_appended(["-c", "a.hip"], {"HIPCC_COMPILE_FLAGS_APPEND": "-I /hip6 -w"})
        ['-c', 'a.hip', '-I', '/hip6', '-w']
    """
    compiles = any(word.endswith(_SOURCES) or word.startswith("-x") for word in words)
    links = not set(words) & {*_NO_LINK, *_NO_COMPILE}
    wanted = [name for name, does in zip(APPENDED, (compiles, links), strict=True) if does]
    return [*words, *(word for name in wanted for word in shlex.split(variables.get(name, "")))]


def command(words: Sequence[str], chain: HipToolchain, arch: str, libraries: Path) -> list[str]:
    """Returns the command for clang.

    Args:
        words: The words after `hipcc`.
        chain: The compiler.
        arch: The target if the words name none.
        libraries: The folder of the runtime.
    """
    own = [
        f"--rocm-path={chain.headers.parent}",
        f"--rocm-device-lib-path={_device_libraries(chain)}",
        f"-B{compiler_folder()}",
        *("-D__HIP_PLATFORM_AMD__=1", "-D__HIP_PLATFORM_HCC__=1"),
        *chain.older,
        *_changed_headers(chain),
        *("-idirafter", str(HEADERS)),
        "-Wno-unused-command-line-argument",
    ]
    if not any(word.startswith("--offload-arch") for word in words):
        own.append(f"--offload-arch={arch}")
    if not any(word.startswith(("-O", "-g")) for word in words):
        own.append("-O3")
    if not any(word.startswith("-g") for word in words):
        own += ["-Xarch_device", "-gline-tables-only"]
    translated, has_sources = _translated(words)
    if chain.older:
        own += ["-include", str(HEADERS / "newer_compiler.h")]
    if _major(words, chain) > OLDEST_MAJOR:
        own += ["-include", str(HEADERS / "later_device_library.h")]
    if not set(words) & {*_NO_LINK, *_NO_COMPILE}:
        own += ["--hip-link", f"-L{libraries}", f"-Wl,-rpath,{libraries}"]
        # Libraries of a distribution ask for versions of symbols; the runtime has none.
        own.append("-Wl,--allow-shlib-undefined")
        translated += [f"-l:libamdhip64.so.{_major(words, chain)}", "-lstdc++", "-lm"]
    if has_sources and not any(word.startswith("-std=") for word in words):
        own.append("-std=c++17")
    return [chain.clang, *own, *translated]


def _translated(words: Sequence[str]) -> tuple[list[str], bool]:
    """The user's words with the language of each file, and whether there are sources."""
    result: list[str] = []
    previous, language, given = "", "none", False
    has_sources = False
    for word in words:
        is_value = previous in _WITH_VALUE
        previous = word
        if word.partition("=")[0] in _DROPPED:
            continue
        if is_value and result and result[-1] in _SEARCHES and word.rstrip("/") == _SYSTEM:
            result.pop()
            continue
        if word == "--genco":
            result += ["--cuda-device-only"]
            continue
        given = given or word.startswith("-x")
        if not is_value and not word.startswith("-") and not given:
            is_source = word.endswith(_SOURCES)
            has_sources = has_sources or is_source
            wanted = "hip" if is_source else "none"
            if wanted != language:
                result += ["-x", wanted]
                language = wanted
        result.append(word)
    if language != "none":
        result += ["-x", "none"]
    return result, has_sources or given


def _arch(words: Sequence[str]) -> str:
    for word in words:
        arch = word.removeprefix("--offload-arch=").partition(":")[0]
        if arch in TARGETS:
            return arch
    return os.environ.get(DEVICE, DEFAULT).removeprefix(PREFIX)


def _major(words: Sequence[str], chain: HipToolchain) -> int:
    """The major version of HIP's headers: the runtime answers as its version does.

    Args:
        words: The words after `hipcc`. Headers in a folder that they name come first.
        chain: The compiler.
    """
    named = [word.removeprefix("-I") for word in words if word.startswith("-I")]
    named += [later for word, later in itertools.pairwise(words) if word in _SEARCHES]
    for folder in [*map(Path, filter(None, named)), chain.headers]:
        header = folder / "hip" / "hip_version.h"
        if header.is_file():
            stated = re.search(r"HIP_VERSION_MAJOR\s+(\d+)", header.read_text(errors="replace"))
            return min(max(int(stated[1]), OLDEST_MAJOR), 7) if stated else OLDEST_MAJOR
    return OLDEST_MAJOR


def _changed_headers(chain: HipToolchain) -> tuple[str, ...]:
    changed = header_folder(chain.headers)
    if changed is None:
        return ()
    beside = (
        chain.headers / "hip" / "amd_detail"
    )  # the copies include what lies beside the originals
    return "-isystem", str(changed), "-idirafter", str(beside)


def _device_libraries(chain: HipToolchain) -> Path:
    return device_library_folder(chain.bitcode, f"oclc_isa_version_{chain.arch[3:]}", chain.isa)
