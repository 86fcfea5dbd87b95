"""The C++ engine: finds the library for this processor and declares its interface."""

from __future__ import annotations

import ctypes as ct
import os
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from kernel_gym.sim import layout_check, layouts
from kernel_gym.sim.processor import ISAS, isas_of_processor

ISA_VARIABLE = "KERNEL_GYM_SIM_ISA"

_SIGNATURES = {
    "sim_layout_count": (ct.c_uint32, []),
    "sim_layout_name": (ct.c_char_p, [ct.c_uint32]),
    "sim_layout_value": (ct.c_uint64, [ct.c_uint32]),
    "sim_handler_count": (ct.c_uint32, []),
    "sim_handler_name": (ct.c_char_p, [ct.c_uint32]),
    "sim_handler_sources": (ct.c_uint32, [ct.c_uint32]),
    "sim_program_new": (
        ct.c_void_p,
        [
            *(ct.c_char_p, ct.c_char_p, ct.c_uint32),  # operations; with fusions, or null
            *(ct.c_void_p, ct.c_uint32),  # constant rows
            *(ct.c_void_p, ct.c_uint32),  # scalar constants
            *(ct.c_uint32, ct.c_uint32, ct.c_uint32),  # rows, blocks, source instructions
        ],
    ),
    "sim_program_delete": (None, [ct.c_void_p]),
    "sim_engine_new": (ct.c_void_p, []),
    "sim_engine_delete": (None, [ct.c_void_p]),
    "sim_set_memory": (ct.c_int, [ct.c_void_p, ct.c_uint64, ct.c_uint64]),
    "sim_set_allocations": (None, [ct.c_void_p, ct.c_void_p, ct.c_uint64]),
    "sim_set_host_call": (None, [ct.c_void_p, ct.c_void_p]),
    "sim_launch": (None, [ct.c_void_p, ct.c_void_p, ct.POINTER(layouts.LaunchRequest)]),
    "sim_block_counts": (ct.POINTER(ct.c_uint64), [ct.c_void_p]),
    "sim_program_set_timing": (None, [ct.c_void_p, ct.c_char_p, ct.c_char_p]),
    "sim_model": (None, [ct.c_void_p, ct.c_void_p, ct.POINTER(layouts.ModelRequest)]),
    "sim_unrecorded": (
        ct.c_uint64,
        [ct.c_void_p, ct.c_void_p, ct.c_uint64, ct.POINTER(ct.c_uint64), ct.c_uint64],
    ),
    "sim_program_set_audit": (None, [ct.c_void_p, ct.c_char_p]),
    "sim_suspects": (ct.POINTER(layouts.Suspect), [ct.c_void_p]),
    "sim_keep": (None, [ct.c_void_p, ct.c_uint32]),
    "sim_restore": (None, [ct.c_void_p, ct.c_uint32]),
    "sim_same": (ct.c_int, [ct.c_void_p, ct.c_uint32]),
    "sim_forget": (None, [ct.c_void_p]),
    "sim_accesses": (ct.POINTER(ct.c_uint64), [ct.c_void_p]),
    "sim_sampled": (ct.POINTER(ct.c_uint64), [ct.c_void_p]),
    "sim_spent": (ct.POINTER(ct.c_double), [ct.c_void_p]),
}


def library_path(isa: str) -> Path:
    """The path of the library for an instruction set. The file may not exist."""
    return Path(__file__).with_name(f"_engine.{isa}.so")


@lru_cache(maxsize=1)
def supported_isas() -> tuple[str, ...]:
    """Instruction sets that this processor supports and that were built, best first."""
    return tuple(isa for isa in isas_of_processor() if library_path(isa).exists())


def choose_isa(isa: str | None = None) -> str:
    """The instruction set to use: the argument, the environment variable, or the best one.

    Raises:
        RuntimeError: If the requested instruction set, or any at all, is not available here.
    """
    wanted = isa or os.environ.get(ISA_VARIABLE) or None
    available = supported_isas()
    if not available:
        raise RuntimeError(
            "the simulator's C++ engine is not built for this processor: install kernel-gym from "
            "its checkout again (make setup)"
        )
    if wanted is None:
        return available[0]
    if wanted not in available:
        raise RuntimeError(f"engine {wanted!r} is not available, found: {', '.join(available)}")
    return wanted


class Handler(NamedTuple):
    """An operation of the engine: its number, and the least number of sources it reads."""

    number: int
    sources: int


class Library:
    """A loaded engine library and its operation names."""

    def __init__(self, isa: str) -> None:
        """Load the library of an instruction set.

        Raises:
            RuntimeError: If the library and this package disagree on a shared layout.
        """
        self.isa = isa
        self.api = ct.CDLL(str(library_path(isa)))
        for name, (result, arguments) in _SIGNATURES.items():
            if not hasattr(self.api, name):
                raise RuntimeError(
                    f"the engine library {isa} has no {name}: it was built from another version. "
                    "Build it again: pip install -e ."
                )
            function = getattr(self.api, name)
            function.restype, function.argtypes = result, arguments
        layout_check.check(self.layout())
        self.handlers = {
            self.api.sim_handler_name(i).decode(): Handler(i, self.api.sim_handler_sources(i))
            for i in range(self.api.sim_handler_count())
        }

    def layout(self) -> dict[str, int]:
        """Offsets, sizes and enum values of the C++ side, by name as in layout_check.expected."""
        return {
            self.api.sim_layout_name(i).decode(): self.api.sim_layout_value(i)
            for i in range(self.api.sim_layout_count())
        }


@lru_cache(maxsize=len(ISAS))
def load_library(isa: str) -> Library:
    """The library of an instruction set. It is loaded once in a process."""
    return Library(isa)
