"""AMD's hip-tests: files of its unit tests, each built as a program of its own.

The headers of HIP 6 that the tests need are not in a checkout of hip-tests. The checkouts `HIP` and
`clr` beside it have them; `hip_tests.mk` puts them together and builds the harness once. Code
objects and programs that a test asks for by name are made beside it, where a source has the same
name. Tests that AMD's own list disables on Linux are left out.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

HIP_TESTS_FILES = 60
"""Drawn files of about 580."""
MAX_HOST_BYTES = 8 << 30
"""Private memory of a program: the messages of a test that fails for each thread fill any."""
MAKEFILE = Path(__file__).with_suffix(".mk")
_OTHER_HARDWARE = frozenset({"gl_interop", "p2p", "surface", "texture", "vulkan_interop"})
"""Folders of tests that need image hardware, a display, or several devices."""
_OTHER_CALLS = re.compile(
    r"hipMalloc(3D)?Array|hipArray|hipFreeArray|hipIpc|PeerAccess|AccessPeer|MemcpyPeer|hipTexture"
    r"|hipSurface|texRef|hipImportExternal|ImageSupport"
)
"""Calls for the same that tests in other folders make."""
_CASE = re.compile(r'TEST_CASE(?:_METHOD)?\s*\(\s*"([^"]+)"')
_MAIN = re.compile(r"\bint\s+main\s*\(")
_SOURCE_LIST = re.compile(r"\bset\s*\(\s*\w*SRC\b([^)]*)\)")
"""A list of sources in a folder's CMakeLists.txt. Its negative tests are in no such list."""
_MADE = re.compile(r'"(\w+)(\.code|_exe)"')
_INCLUDED = re.compile(r'#include\s+[<"]([\w.]+)[>"]')
_SUFFIXES = (".cc", ".cpp")


def drawn_files(checkout: Path, seed: int, count: int = HIP_TESTS_FILES) -> list[Path]:
    """Returns a fixed draw of the files with tests for one device without image hardware.

    Args:
        checkout: The folder of hip-tests.
        seed: The seed of the draw.
        count: Most files.
    """
    files = [file for file in _tests(checkout) if _is_for_one_device(file)]
    return sorted(random.Random(seed).sample(files, min(count, len(files))))


def build_words(checkout: Path, file: Path) -> tuple[str, ...]:
    """Returns the command that builds the program of a file, in its folder."""
    return (
        *("make", "-f", str(MAKEFILE), f"CHECKOUTS={checkout.parent.resolve()}"),
        *(f"SHARED={' '.join(shared_sources(file))}", str(_program(checkout, file))),
        *made_files(file),
    )


def run_words(checkout: Path, file: Path) -> tuple[str, ...]:
    """Returns the command that runs the tests of a file, without those that AMD disables."""
    disabled = disabled_tests(checkout)
    cases = dict.fromkeys(_CASE.findall(_text(file)))
    left_out = [name for name in disabled if any(_is_of(name, case) for case in cases)]
    command = (str(_program(checkout, file)), *(f"~{name}" for name in left_out))
    return ("prlimit", f"--data={MAX_HOST_BYTES}", *command)


def disabled_tests(checkout: Path) -> list[str]:
    """Returns the names that AMD's list disables under Linux on every GPU and on gfx942.

    A star stands for any text, as in a name that the harness takes.
    """
    path = checkout / "catch" / "hipTestMain" / "config" / "config_amd_linux"
    sections = path.read_text(encoding="utf-8").split("#if ")
    for_chip = [s for s in sections if re.match(r"defined COMMON|.*\bgfx942\b", s)]
    names = re.findall(r'"(Unit_[^"]+|Performance_[^"]+)"', "".join(for_chip))
    return list(dict.fromkeys(names))


def _is_of(disabled: str, case: str) -> bool:
    """Whether a disabled name is a case, or one of those that a template makes of it."""
    stem = disabled.partition(" - ")[0]
    return bool(re.fullmatch(re.escape(stem).replace(r"\*", ".*"), case))


def shared_sources(file: Path) -> list[str]:
    """Returns the sources without tests that a folder lists: those with tests use them."""
    lists = file.parent / "CMakeLists.txt"
    listed = set(" ".join(_SOURCE_LIST.findall(_text(lists))).split()) if lists.exists() else set()
    texts = {one.name: _text(one) for one in _sources(file.parent) if one.name in listed}
    return [
        name for name, text in texts.items() if not _CASE.search(text) and not _MAIN.search(text)
    ]


def made_files(file: Path) -> list[str]:
    """Returns the code objects and programs that a test and its headers name.

    A program's name ends with `_exe`, as that of its source does. Left out is what has no source.
    """
    texts = [_text(file)]
    headers = (file.with_name(name) for name in _INCLUDED.findall(texts[0]))
    texts += [_text(header) for header in headers if header.exists()]
    wanted = dict.fromkeys(_MADE.findall("\n".join(texts)))
    sources = {one.stem for one in _sources(file.parent)}
    return [f"{stem}{end}" for stem, end in wanted if (stem + end).removesuffix(".code") in sources]


def _sources(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.suffix in _SUFFIXES)


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace")


def _tests(checkout: Path) -> Iterator[Path]:
    unit = checkout / "catch" / "unit"
    for file in sorted(unit.rglob("*")):
        if file.suffix in _SUFFIXES and file.relative_to(unit).parts[0] not in _OTHER_HARDWARE:
            yield file


def _is_for_one_device(file: Path) -> bool:
    text = _text(file)
    return bool(_CASE.search(text)) and not _OTHER_CALLS.search(text)


def _program(checkout: Path, file: Path) -> Path:
    """Returns the absolute path of the program of a file; make finds the source by it."""
    return file.resolve().with_suffix(".kernel-gym")
