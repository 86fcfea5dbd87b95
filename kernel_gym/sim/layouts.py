"""Every layout and number that the C++ engine and the Python side share.

A structure here has the fields of the C++ structure of the same name, in the same order. An enum
here has the values of the C++ enum of the same name: member ``READS_MEMORY`` is ``kReadsMemory``.
layout_check.py compares both sides when a library is loaded, so that a change on one side alone is
an error and not a shifted field. The C++ side lists its values in csrc/layout.cpp.
"""

from __future__ import annotations

import ctypes as ct
import enum

NOT_WANTED = 0xFFFF
"""A register number in :class:`LaunchRequest` that stands for no register."""


# ---- the decoded program
class Operand(ct.Structure):
    """An operand of an operation (csrc/wave.h)."""

    _fields_ = [
        ("index", ct.c_uint32),
        ("space", ct.c_uint8),
        ("unused", ct.c_uint8),
        ("flags", ct.c_uint16),
    ]


class Inst(ct.Structure):
    """An operation of the engine (csrc/wave.h)."""

    _fields_ = [
        ("handler", ct.c_uint64),
        ("dst", ct.c_uint32),
        ("dst2", ct.c_uint32),
        ("src", Operand * 4),
        ("imm", ct.c_uint32),
        ("aux", ct.c_uint32),
        ("index", ct.c_uint32),
        ("flags", ct.c_uint32),
    ]


class Space(enum.IntEnum):
    """Where an operand lies; MODIFIED is a flag on top of VECTOR or CONSTANT."""

    VECTOR = 0
    CONSTANT = 1
    SCALAR = 2
    MODIFIED = 4
    NONE = 255


class OperandFlag(enum.IntFlag):
    """Modifiers of a vector source, in the order in which they are applied."""

    SELECT_MASK = 0x7
    SIGN_EXTEND = 0x8
    SWIZZLE = 0x10
    LOW_FROM_HIGH = 0x20
    HIGH_FROM_HIGH = 0x40
    FROM_HALF = 0x80
    ABS16 = 0x100
    ABS32 = 0x200
    NEG16 = 0x400
    NEG32 = 0x800


class ScalarIndex(enum.IntEnum):
    """Numbers of the scalar registers with a name, as the hardware encodes them."""

    FLAT_SCRATCH = 102
    VCC = 106
    M0 = 124
    EXEC = 126
    SCC = 128
    NULL = 130
    SCALAR_CONSTANTS = 132


class Atomic(enum.IntEnum):
    """The function of an atomic operation (csrc/ops/atomics.h)."""

    ADD = 0
    SUB = 1
    MIN_SIGNED = 2
    MIN_UNSIGNED = 3
    MAX_SIGNED = 4
    MAX_UNSIGNED = 5
    AND = 6
    OR = 7
    XOR = 8
    INCREMENT = 9
    DECREMENT = 10
    SWAP = 11
    COMPARE_SWAP = 12
    ADD_FLOAT = 13
    MIN_FLOAT = 14
    MAX_FLOAT = 15
    ADD_PACKED_F16 = 16
    ADD_PACKED_BF16 = 17


class Format(enum.IntEnum):
    """Floats of 4 to 8 bits (csrc/ops/small_float.h)."""

    FP8_FNUZ = 0
    BF8_FNUZ = 1
    FP8 = 2
    BF8 = 3
    FP6 = 4
    BF6 = 5
    FP4 = 6


class Type(enum.IntEnum):
    """Element types of matrix instructions; they continue :class:`Format` (csrc/ops/mfma.h)."""

    F16 = 7
    BF16 = 8
    I8 = 9
    F32 = 10
    XF32 = 11
    F64 = 12


# ---- launches
class LaunchRequest(ct.Structure):
    """Inputs and results of a launch (csrc/launch/dispatch.h)."""

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
        ("margin", ct.c_uint64),
        ("l1_sets", ct.c_uint64),
        ("further", ct.c_uint64),
        ("further_count", ct.c_uint64),
        ("instructions", ct.c_uint64),
        ("read_lines", ct.c_uint64),
        ("written_lines", ct.c_uint64),
        ("atomic_requests", ct.c_uint64),
        ("atomic_lines", ct.c_uint64),
        ("atomic_hottest", ct.c_uint64),
        ("most_instructions", ct.c_uint64),
        ("most_own_lines", ct.c_uint64),
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
        ("outside_kind", ct.c_uint32),
        ("reverse_workgroups", ct.c_uint32),
    ]


class FaultKind(enum.IntEnum):
    """Why a kernel was stopped (csrc/wave.h)."""

    NONE = 0
    OUT_OF_BOUNDS_READ = 1
    OUT_OF_BOUNDS_WRITE = 2
    MISALIGNED = 3
    LDS_OUT_OF_BOUNDS = 4
    TIME_LIMIT = 5
    INSTRUCTION_LIMIT = 6
    DEADLOCK = 7
    TRAP = 8
    UNSUPPORTED = 9
    JUMP = 10
    LDS_RACE = 11
    GLOBAL_RACE = 12
    LOST_WRITE = 13
    MISSING_WAITCNT = 14
    UNINITIALISED_LDS = 15
    UNINITIALISED_REGISTER = 16
    UNWAITED_WRITE = 17
    UNWAITED_READ = 18


# ---- audits
class Registers(ct.Structure):
    """Consecutive registers of an instruction; the top bit of ``count`` means scalar ones."""

    _fields_ = [("first", ct.c_uint16), ("count", ct.c_uint16)]


class AuditInst(ct.Structure):
    """The facts about one source instruction for an audit (csrc/audit/table.h)."""

    _fields_ = [
        ("kind", ct.c_uint16),
        ("vector_limit", ct.c_uint16),
        ("local_limit", ct.c_uint16),
        ("alignment", ct.c_uint16),
        ("exposed", ct.c_uint8),
        ("defines", ct.c_uint8),
        ("reads", Registers * 6),
        ("writes", Registers * 2),
    ]


class AuditKind(enum.IntFlag):
    """The kind of an instruction, for an audit."""

    READS_MEMORY = 1
    WRITES_MEMORY = 2
    ATOMIC_ACCESS = 4
    ACQUIRES = 8
    RELEASES = 16
    VECTOR_COUNTER = 32
    LOCAL_COUNTER = 64
    SCALAR_COUNTER = 128
    WAITS = 256
    HIGH_HALF = 512
    ALL_LANES_WRITTEN = 1024
    COMPARES = 2048


class Suspect(ct.Structure):
    """A read of undefined storage, or a load that may race (csrc/audit/audit_launch.h)."""

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


class SuspectKind(enum.IntEnum):
    """The reason why a read is suspicious."""

    REGISTER_SUSPECT = 0
    LDS_SUSPECT = 1
    RACE_SUSPECT = 2


# ---- the timing model
class TimedInst(ct.Structure):
    """How one source instruction occupies a compute unit (csrc/timing/timing.h)."""

    _fields_ = [
        ("unit", ct.c_uint8),
        ("is_store", ct.c_uint8),
        ("cycles", ct.c_uint16),
        ("vector_memory_limit", ct.c_uint16),
        ("local_limit", ct.c_uint16),
        ("dst_row", ct.c_uint16),
        ("dst_rows", ct.c_uint16),
        ("src_rows", ct.c_uint16 * 3),
        ("sharing", ct.c_uint16),
        ("gap", ct.c_uint16),
        ("lds_banks", ct.c_uint16),
    ]


class BlockRange(ct.Structure):
    """The source instructions of a basic block; ``last`` is exclusive."""

    _fields_ = [("first", ct.c_uint32), ("last", ct.c_uint32)]


class Unit(enum.IntEnum):
    """The unit that executes an instruction."""

    SCALAR = 0
    VECTOR = 1
    MATRIX = 2
    LDS = 3
    MEMORY = 4
    SCALAR_MEMORY = 5
    WAIT = 6
    BARRIER = 7
    BRANCH = 8
    IDLE = 9
    FREE = 10


class SharingKind(enum.IntFlag):
    """The effect of an instruction that other workgroups may see."""

    SHARES_READS = 1
    SHARES_WRITES = 2
    SHARES_ATOMIC = 4
    PASSES_L1 = 8
    USES_SCRATCH = 16


class Stall(enum.IntEnum):
    """The activity on which a wave spends cycles."""

    ISSUE = 0
    VECTOR_BUSY = 1
    MATRIX_BUSY = 2
    MATRIX_RESULT = 3
    LDS_QUEUE = 4
    MEMORY_QUEUE = 5
    MEMORY = 6
    LDS = 7
    SCALAR_MEMORY = 8
    BARRIER = 9


class ModelRequest(ct.Structure):
    """Inputs and results of the timing model (csrc/timing/timing.h)."""

    _fields_ = [
        *((name, ct.c_double) for name in ("lds_latency", "l1_latency", "l2_latency")),
        *((name, ct.c_double) for name in ("mall_latency", "hbm_latency", "scalar_latency")),
        *((name, ct.c_double) for name in ("store_latency", "workgroup_launch")),
        *((name, ct.c_double) for name in ("l2_bytes_per_cycle", "scratch_latency", "miss_lines")),
        *((name, ct.c_double) for name in ("unsampled_lds", "chiplets")),
        *((name, ct.c_double) for name in ("handover", "atomic_handover", "start_interval")),
        ("instruction_budget", ct.c_uint64),
        ("slots", ct.c_uint64),
        ("workgroups", ct.c_uint64),
        ("copies", ct.c_uint32),
        ("waves", ct.c_uint32),
        ("makespan", ct.c_double),
        ("replay_cycles", ct.c_double),
        ("explained", ct.c_double),
        ("guessed", ct.c_double),
        ("unrecorded", ct.c_double),
        ("waiting", ct.c_double),
        ("busy", ct.c_double * 8),
        ("stalls", ct.c_double * 10),
        ("replayed", ct.c_uint64),
    ]


class AccessCounts(ct.Structure):
    """Sums over the executions of one memory instruction (csrc/timing/recorder.h)."""

    _fields_ = [
        ("executions", ct.c_uint64),
        ("lanes", ct.c_uint64),
        ("bytes", ct.c_uint64),
        ("segments", ct.c_uint64),
        ("lines", ct.c_uint64),
        ("l1_misses", ct.c_uint64),
        ("late", ct.c_uint64),
        ("fetched", ct.c_uint64),
        ("lds_cycles", ct.c_uint64),
        ("writes", ct.c_uint64),
        ("worst", ct.c_uint64),
    ]


def field_names(structure: type[ct.Structure]) -> tuple[str, ...]:
    """The names of a structure's fields, in order."""
    return tuple(field[0] for field in structure._fields_)
