"""The Triton versions that work here: how they are set up, and what each lacks."""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from pathlib import Path

FIRST, LAST = (3, 5), (3, 9)
"""The versions that are tested, from and to."""

ENVIRONMENT = {
    "TRITON_DEFAULT_FP_FUSION": "1",
    "TRITON_HIP_USE_BLOCK_PINGPONG": "0",
}
"""The settings of every process in which Triton compiles.

The pass "block ping-pong" of Triton 3.5 to 3.8 lets a wave pass a barrier while it still reads LDS
(triton-lang/triton#11696), so that results on gfx942 are wrong. It is off in all versions.
"""


def installed() -> str:
    """Returns the version of Triton, which is not imported: judges have no other use for it."""
    spec = find_spec("triton")
    text = Path(spec.origin).read_text(encoding="utf-8") if spec and spec.origin else ""
    version = re.search(r"""^__version__ = ['"](.+)['"]""", text, re.MULTILINE)
    if version and "triton" not in sys.modules:
        return version[1]
    import triton

    return str(triton.__version__)


def accept_annotated_globals() -> None:
    """Lets kernels read globals such as `BLOCK: tl.constexpr = 1024`.

    Earlier versions of Triton took them for constants, and suites of that time use them. Later ones
    take them with this setting only.
    """
    import triton

    triton.knobs.compilation.allow_non_constexpr_globals = True


_BLOCK_POINTERS = "block pointers (tl.make_block_ptr, tl.advance, boundary_check)"
_SINCE = {
    "mul": (3, 6),
    "sub": (3, 6),
    "squeeze": (3, 7),
    "to_tensor": (3, 7),
    "unsqueeze": (3, 7),
    "aggregate_replace": (3, 8),
    "expect_zero": (3, 8),
    "atomic_load": (3, 9),
    "atomic_poll": (3, 9),
    "atomic_store": (3, 9),
}
"""Functions of `triton.language`, by the first of the versions that has them."""
_NO_FUNCTION = re.compile(r"(?:module 'triton\.language'|'tensor' object) has no attribute '(\w+)'")
_NO_BLOCK_POINTERS = re.compile(
    r"Block pointers have been removed|unexpected keyword argument '(boundary_check|padding_option)"
    r"|has no attribute '(make_block_ptr|advance)'"
)


_NO_ELEMENT_TYPE = "'_aggregate_type' object has no attribute 'element_ty'"
"""Triton 3.8 says so of `.type.element_ty` of a block pointer, which is a structure there."""


def numbers(version: str) -> tuple[int, int]:
    """Returns major and minor number of a version.

    Raises:
        ValueError: The text does not start with two numbers.
    """
    match = re.match(r"(\d+)\.(\d+)", version)
    if not match:
        raise ValueError(f"found {version!r}, expected a version such as 3.8.0")
    return int(match[1]), int(match[2])


def has_block_pointers(version: str) -> bool:
    """Whether a version has `tl.make_block_ptr`."""
    return numbers(version) < (3, 9)


def lack(message: str, version: str) -> tuple[str, str] | None:
    """Returns what a version of Triton lacks, if an error of Triton means that.

    Args:
        message: What Triton has raised.
        version: The version of Triton.

    Returns:
        The name of what is missing, and one sentence that also says which versions have it; None
        if the error has another reason.
    """
    if _NO_BLOCK_POINTERS.search(message) and not has_block_pointers(version):
        return "block pointers", (
            f"Triton {version} has no {_BLOCK_POINTERS}: Triton 3.5 to 3.8 have them; "
            "use tl.make_tensor_descriptor here"
        )
    if _NO_ELEMENT_TYPE in message:
        return "types of block pointers", (
            f"in Triton {version} the type of a block pointer has no element_ty: Triton 3.5 to 3.7 "
            "have it; keep the type of the pointer that tl.make_block_ptr was given"
        )
    function = _NO_FUNCTION.search(message)
    since = _SINCE.get(function[1]) if function else None
    if not function or since is None or numbers(version) >= since:
        return None
    name = f"tl.{function[1]}"
    return name, f"Triton {version} has no {name}: Triton {since[0]}.{since[1]} or later has it"


def lacking(message: str, version: str) -> str:
    """Returns the sentence of `lack`; empty where there is none."""
    missing = lack(message, version)
    return missing[1] if missing else ""


def problem(version: str) -> str:
    """Returns why a version may not work; empty if it is one of those that are tested."""
    if FIRST <= numbers(version) <= LAST:
        return ""
    spans = f"{FIRST[0]}.{FIRST[1]} to {LAST[0]}.{LAST[1]}"
    return f"found Triton {version}, tested are {spans}; install one of these"
