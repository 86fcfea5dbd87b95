"""The assembler of the LLVM that ships with Triton: which instructions a target has."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import triton
from triton._C.libtriton import amd, llvm

_HAS_TRIPLE = tuple(map(int, triton.__version__.split(".")[:2])) >= (3, 9)
_TRIPLE = ("amdgcn-amd-amdhsa",) if _HAS_TRIPLE else ()


@contextmanager
def _quiet() -> Iterator[None]:
    """The assembler reports errors on the process's standard error: drop them."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


@cache
def _initialise() -> None:
    llvm.init_targets()


def accepted(lines: list[str], target: str) -> list[bool]:
    """Whether the target has each of the instructions."""
    _initialise()
    with _quiet():
        return [bool(amd.assemble_amdgcn(f"{line}\n", *_TRIPLE, target, "")) for line in lines]
