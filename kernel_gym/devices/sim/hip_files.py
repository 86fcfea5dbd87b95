"""The files and commands of a HIP build for the simulator, and the errors of its log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

SOURCE, STUB, ASSEMBLER, LIBRARY = "candidate.hip", "stub.cpp", "k.s", "k.so"
"""Names of the files that the compiler reads and makes."""
TILELANG_SOURCE, INLINE_SOURCE = "written_by_tilelang.hip", "load_inline.hip"
"""Names of sources that are not the candidate's file: lines of findings and profiles have them."""

# The compiler refers to the device binary that it would embed; here it stays outside. Clang 22 and
# older versions have different names for it.
STUB_TEXT = """
extern "C" __attribute__((visibility("hidden"))) void* __hip_gpubin_handle_ = nullptr;
extern "C" __attribute__((visibility("hidden"))) const char __hip_fatbin_[8] = {0};
extern "C" __attribute__((visibility("hidden"))) const char __hip_fatbin[8] = {0};
"""


def files(source: str, name: str = SOURCE) -> dict[str, str]:
    """The texts that the compiler reads, by file name.

    Args:
        source: The text in HIP.
        name: The name of its file.
    """
    return {name: source, STUB: STUB_TEXT}


def commands(toolchain: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Both passes, for the folder of the files: one makes the assembler text, one the library."""
    device = [*toolchain["device"], "-o", ASSEMBLER, SOURCE]
    return [device, [*toolchain["host"], "-o", LIBRARY, SOURCE, "-x", "c++", STUB]]


def first_error(text: str) -> str:
    """The first error of a compiler's log and what follows it."""
    lines = text.splitlines()
    first = next((i for i, line in enumerate(lines) if "error:" in line), 0)
    return "\n".join(lines[first : first + 40])
