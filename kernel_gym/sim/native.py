"""The C++ engine: finds the library for this processor and declares its interface."""

from __future__ import annotations

import ctypes as ct
import os
import sysconfig
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

ISAS = ("avx512", "avx2", "portable")
ISA_VARIABLE = "KERNEL_GYM_SIM_ISA"
_NEEDED_FLAGS = {
    "avx512": {"avx512f", "avx512bw", "avx512dq", "avx512vl", "fma", "f16c", "bmi2", "abm"},
    "avx2": {"avx2", "fma", "f16c", "bmi1", "bmi2", "abm"},
    "portable": set(),
}
NOT_WANTED = 0xFFFF  # a register number in LaunchRequest


class LaunchRequest(ct.Structure):
    """Mirror of ``LaunchRequest`` in csrc/dispatch.h."""

    _fields_ = [
        ("grid", ct.c_uint32 * 3),
        ("block", ct.c_uint32 * 3),
        ("lds_size", ct.c_uint32),
        ("scratch_size", ct.c_uint32),
        ("kernarg", ct.c_uint64),
        ("kernarg_size", ct.c_uint64),
        ("packet", ct.c_uint64),
        ("data", ct.c_uint64),
        ("data_size", ct.c_uint64),
        ("kernarg_register", ct.c_uint32),
        ("packet_register", ct.c_uint32),
        ("preload_register", ct.c_uint32),
        ("preload_offset", ct.c_uint32),
        ("preload_count", ct.c_uint32),
        ("workgroup_register", ct.c_uint32 * 3),
        ("threads", ct.c_uint32),
        ("resident_limit", ct.c_uint32),
        ("sample_count", ct.c_uint32),
        ("footprint", ct.c_uint32),
        ("time_limit_s", ct.c_double),
        ("instruction_limit", ct.c_uint64),
        ("lds_map", ct.c_uint64),
        ("fill_row", ct.c_uint32),
        ("fill", ct.c_uint32),
        ("audit", ct.c_uint32),
        ("reverse_waves", ct.c_uint32),
        ("sample_seed", ct.c_uint64),
        ("poison", ct.c_uint64),
        ("sharing", ct.c_uint64),
        ("instructions", ct.c_uint64),
        ("read_lines", ct.c_uint64),
        ("written_lines", ct.c_uint64),
        ("atomic_requests", ct.c_uint64),
        ("atomic_lines", ct.c_uint64),
        ("atomic_hottest", ct.c_uint64),
        ("sampled", ct.c_uint32),
        ("fault_kind", ct.c_uint32),
        ("fault_instruction", ct.c_uint32),
        ("fault_wave", ct.c_uint32),
        ("fault_lane", ct.c_uint32),
        ("fault_size", ct.c_uint32),
        ("fault_workgroup", ct.c_uint32 * 3),
        ("fault_other_instruction", ct.c_uint32),
        ("fault_address", ct.c_uint64),
        ("fault_other_workgroup", ct.c_uint64),
        ("fault_other_wave", ct.c_uint32),
        ("suspects", ct.c_uint32),
    ]


class Suspect(ct.Structure):
    """Mirror of ``Suspect`` in csrc/audit.h: an undefined read, or a load that races."""

    _fields_ = [
        ("kind", ct.c_uint32),
        ("instruction", ct.c_uint32),
        ("wave", ct.c_uint32),
        ("lane", ct.c_uint32),
        ("workgroup", ct.c_uint64),
        ("place", ct.c_uint64),
        ("map", ct.c_uint64),
        ("other_instruction", ct.c_uint32),
        ("other_wave", ct.c_uint32),
    ]


class ModelRequest(ct.Structure):
    """Mirror of ``ModelRequest`` in csrc/timing.h."""

    _fields_ = [
        ("lds_latency", ct.c_double),
        ("l1_latency", ct.c_double),
        ("miss_latency", ct.c_double),
        ("scalar_latency", ct.c_double),
        ("store_latency", ct.c_double),
        ("workgroup_launch", ct.c_double),
        ("l2_bytes_per_cycle", ct.c_double),
        ("unsampled_lds", ct.c_double),
        ("handover", ct.c_double),
        ("atomic_handover", ct.c_double),
        ("instruction_budget", ct.c_uint64),
        ("slots", ct.c_uint64),
        ("workgroups", ct.c_uint64),
        ("copies", ct.c_uint32),
        ("waves", ct.c_uint32),
        ("makespan", ct.c_double),
        ("replay_cycles", ct.c_double),
        ("explained", ct.c_double),
        ("busy", ct.c_double * 8),
        ("stalls", ct.c_double * 10),
        ("replayed", ct.c_uint64),
    ]


ACCESS_FIELDS = (
    "executions",
    "lanes",
    "bytes",
    "segments",
    "lines",
    "l1_misses",
    "lds_cycles",
    "writes",
)  # columns of AccessCounts in csrc/recorder.h

_SIGNATURES = {
    "sim_handler_count": (ct.c_uint32, []),
    "sim_handler_name": (ct.c_char_p, [ct.c_uint32]),
    "sim_handler_sources": (ct.c_uint32, [ct.c_uint32]),
    "sim_program_new": (
        ct.c_void_p,
        [
            *(ct.c_char_p, ct.c_char_p, ct.c_uint32),  # instructions, with idioms replaced or null
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
    "sim_launch": (None, [ct.c_void_p, ct.c_void_p, ct.POINTER(LaunchRequest)]),
    "sim_block_counts": (ct.POINTER(ct.c_uint64), [ct.c_void_p]),
    "sim_program_set_timing": (None, [ct.c_void_p, ct.c_char_p, ct.c_char_p]),
    "sim_model": (None, [ct.c_void_p, ct.c_void_p, ct.POINTER(ModelRequest)]),
    "sim_program_set_audit": (None, [ct.c_void_p, ct.c_char_p]),
    "sim_suspects": (ct.POINTER(Suspect), [ct.c_void_p]),
    "sim_keep": (None, [ct.c_void_p, ct.c_uint32]),
    "sim_restore": (None, [ct.c_void_p, ct.c_uint32]),
    "sim_same": (ct.c_int, [ct.c_void_p, ct.c_uint32]),
    "sim_forget": (None, [ct.c_void_p]),
    "sim_accesses": (ct.POINTER(ct.c_uint64), [ct.c_void_p]),
    "sim_sampled": (ct.POINTER(ct.c_uint64), [ct.c_void_p]),
    "sim_spent": (ct.POINTER(ct.c_double), [ct.c_void_p]),
}


def _processor_flags() -> set[str]:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return set()
    for line in text.splitlines():
        if line.startswith("flags"):
            return set(line.partition(":")[2].split())
    return set()


def library_path(isa: str) -> Path:
    """Where the library of an instruction set lies (it may not exist)."""
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    return Path(__file__).with_name(f"_engine_{isa}{suffix}")


@lru_cache(maxsize=1)
def supported_isas() -> tuple[str, ...]:
    """Instruction sets that this processor runs and that were built, best first."""
    flags = _processor_flags()
    return tuple(isa for isa in ISAS if _NEEDED_FLAGS[isa] <= flags and library_path(isa).exists())


def choose_isa(isa: str | None = None) -> str:
    """The instruction set to use: the argument, the environment's wish, or the best one.

    Raises:
        RuntimeError: If the wanted one, or any, is not available here.
    """
    wanted = isa or os.environ.get(ISA_VARIABLE) or None
    available = supported_isas()
    if not available:
        raise RuntimeError(
            "the simulator's C++ engine is not built: install the package (pip install -e .)"
        )
    if wanted is None:
        return available[0]
    if wanted not in available:
        raise RuntimeError(f"engine {wanted!r} is not available, found: {', '.join(available)}")
    return wanted


class Handler(NamedTuple):
    """An operation of the engine: its number, and how many sources it reads at least."""

    number: int
    sources: int


class Library:
    """A loaded engine library and its operation names."""

    def __init__(self, isa: str) -> None:
        """Load the library of an instruction set."""
        self.isa = isa
        self.api = ct.CDLL(str(library_path(isa)))
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(self.api, name)
            function.restype, function.argtypes = result, arguments
        self.handlers = {
            self.api.sim_handler_name(i).decode(): Handler(i, self.api.sim_handler_sources(i))
            for i in range(self.api.sim_handler_count())
        }


@lru_cache(maxsize=len(ISAS))
def load_library(isa: str) -> Library:
    """The library of an instruction set, loaded once a process."""
    return Library(isa)
