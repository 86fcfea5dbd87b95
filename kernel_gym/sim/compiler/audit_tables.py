"""The side table of audits: registers, counters and kind of access of each instruction.

The table has one ``AuditInst`` (layouts.py) for each source instruction. It depends on the
assembler text alone. A new operation of the engine needs no change here if its destination is the
first operand and its sources follow.
"""

from __future__ import annotations

import re

from kernel_gym.sim.asm.operands import SCALAR_CONSTANTS, parse_operand
from kernel_gym.sim.asm.signatures import signature
from kernel_gym.sim.asm.text import Instruction
from kernel_gym.sim.asm.waits import decode_wait
from kernel_gym.sim.compiler.decode import DecodedKernel
from kernel_gym.sim.layout_check import packer
from kernel_gym.sim.layouts import AuditInst, AuditKind

READS, WRITES = 6, 2  # ranges that one entry holds
NO_LIMIT = 0xFFFF
_SCALAR_RANGE = 0x8000
_LAYOUT = packer(AuditInst)
_NOTHING = AuditKind(0)
_READ_MODIFY_WRITE = AuditKind.READS_MEMORY | AuditKind.WRITES_MEMORY | AuditKind.ATOMIC_ACCESS
_SCALAR_LOADS = re.compile(r"^s_(buffer_|scratch_)?load_dword|^s_mem(real)?time")
_VECTOR_MEMORY = re.compile(r"^(global|flat|buffer|scratch|tbuffer)_(load|store|atomic)")
_NO_DESTINATION = re.compile(
    r"^(s_cmp|s_bitcmp|s_cbranch|s_branch|s_barrier|s_nop|s_endpgm|s_setpc|s_setreg|s_set_gpr"
    r"|s_sleep|s_setprio|s_trap|s_sendmsg|buffer_inv|buffer_wbl2|s_dcache|s_icache)"
)
_CHANGES_EXEC = re.compile(r"saveexec|wrexec|^v_cmpx|^s_(swap|set)pc")
_CROSS_LANE = re.compile(r"^v_(readlane|readfirstlane|writelane|mfma|smfmac|accvgpr)")
_ALIGNMENT = ((re.compile(r"^ds_(read|write)_b128"), 16), (re.compile(r"^ds_\w+_b64$"), 8))
_COMPARES = re.compile(r"_(cmpswap|cmpst)")
_COHERENT = frozenset({"sc0", "sc1", "glc"})

Range = tuple[int, int]  # first register, count with the scalar bit


def _range(text: str, vector_registers: int) -> Range | None:
    """The registers that an operand names; None if it names none."""
    operand = parse_operand(text)
    if operand.is_vector:
        return operand.index + (vector_registers if operand.kind == "a" else 0), operand.count
    if operand.kind == "s" and operand.index + operand.count <= SCALAR_CONSTANTS:
        return operand.index, operand.count | _SCALAR_RANGE
    return None


def _limits(instruction: Instruction) -> tuple[int, int]:
    """The maximum of loads under way after a wait: by vmcnt and by lgkmcnt."""
    wait = decode_wait(instruction)
    return (
        NO_LIMIT if wait.vector is None else wait.vector,
        NO_LIMIT if wait.local is None else wait.local,
    )


def _global_kind(mnemonic: str, modifiers: dict[str, str]) -> AuditKind:
    segment, _, operation = mnemonic.partition("_")
    kind = AuditKind.VECTOR_COUNTER
    if segment == "flat":
        kind |= AuditKind.LOCAL_COUNTER
    if segment == "scratch":  # private to a lane, so no other wave accesses it
        return kind
    coherent = bool(_COHERENT & modifiers.keys())
    if operation.startswith("atomic"):
        returns = bool({"sc0", "glc"} & modifiers.keys())
        kind |= _READ_MODIFY_WRITE | AuditKind.RELEASES
        return kind | (AuditKind.ACQUIRES if returns else _NOTHING)
    if operation.startswith("store"):
        kind |= AuditKind.WRITES_MEMORY | (
            AuditKind.ATOMIC_ACCESS | AuditKind.RELEASES if coherent else _NOTHING
        )
        return kind | (AuditKind.HIGH_HALF if operation.endswith("_hi") else _NOTHING)
    kind |= AuditKind.READS_MEMORY | (
        AuditKind.ATOMIC_ACCESS | AuditKind.ACQUIRES if coherent else _NOTHING
    )
    to_lds = "lds" in modifiers or "_lds_" in mnemonic
    return kind | (AuditKind.WRITES_MEMORY if to_lds else _NOTHING)


def _lds_kind(mnemonic: str) -> AuditKind:
    kind = AuditKind.LOCAL_COUNTER
    if mnemonic.startswith(("ds_bpermute", "ds_permute", "ds_swizzle", "ds_nop", "ds_gws")):
        return kind
    if mnemonic.startswith("ds_read"):
        return kind | AuditKind.READS_MEMORY
    if mnemonic.startswith("ds_write"):
        high = AuditKind.HIGH_HALF if mnemonic.endswith("_hi") else _NOTHING
        return kind | AuditKind.WRITES_MEMORY | high
    returns = AuditKind.ACQUIRES if "_rtn" in mnemonic else _NOTHING
    return kind | _READ_MODIFY_WRITE | returns


def kind_of(instruction: Instruction) -> AuditKind:
    """The kind of an instruction."""
    mnemonic = instruction.mnemonic
    if mnemonic == "s_waitcnt":
        return AuditKind.WAITS
    if mnemonic.startswith("buffer_inv") or mnemonic.startswith("buffer_wbinv"):
        return AuditKind.ACQUIRES
    if mnemonic.startswith("buffer_wbl2"):
        return AuditKind.RELEASES
    if _SCALAR_LOADS.match(mnemonic):
        reads = _NOTHING if "time" in mnemonic else AuditKind.READS_MEMORY
        return AuditKind.SCALAR_COUNTER | reads
    compares = AuditKind.COMPARES if _COMPARES.search(mnemonic) else _NOTHING
    if mnemonic.startswith("ds_"):
        return _lds_kind(mnemonic) | compares
    if _VECTOR_MEMORY.match(mnemonic):
        return _global_kind(mnemonic, instruction.modifiers) | compares
    return AuditKind.ALL_LANES_WRITTEN if _CROSS_LANE.match(mnemonic) else _NOTHING


def destinations(instruction: Instruction, kind: AuditKind) -> int:
    """How many of the first operands are written."""
    mnemonic = instruction.mnemonic
    if kind & AuditKind.WAITS or _NO_DESTINATION.match(mnemonic):
        return 0
    if kind & AuditKind.WRITES_MEMORY and not kind & AuditKind.READS_MEMORY:
        return 0
    if "_store" in mnemonic or "lds" in instruction.modifiers or "_lds_" in mnemonic:
        return 0
    if kind & AuditKind.ATOMIC_ACCESS and kind & AuditKind.WRITES_MEMORY:
        return int(bool(kind & AuditKind.ACQUIRES))
    if mnemonic.startswith("v_swap"):
        return 2
    if mnemonic.startswith("v_") and not mnemonic.startswith(("v_cmp", "v_mfma", "v_smfmac")):
        return 1 + signature(mnemonic).carry_out
    return 1


def reads_destination(mnemonic: str) -> bool:
    """Whether the first operand is also a source."""
    if mnemonic.startswith(("v_swap", "v_smfmac")):
        return True
    return mnemonic.startswith("v_") and signature(mnemonic).accumulates


class DefinedRegisters:
    """The vector registers that a basic block is known to have defined so far."""

    def __init__(self) -> None:
        """Start at the head of a block, where nothing is known."""
        self.looked_at: set[int] = set()  # read or written under the current EXEC
        self.written: set[int] = set()  # under the current EXEC
        self.whole: set[int] = set()  # by all lanes

    def step(
        self, instruction: Instruction, kind: AuditKind, reads: list[Range], writes: list[Range]
    ) -> tuple[list[Range], list[Range]]:
        """The ranges that an audit must check: possibly undefined, or defined for the first time.

        A register that was read before under the same EXEC is defined or already a suspect.
        """
        exposed = [r for r in reads if not _rows(r) <= self.looked_at | self.whole]
        everywhere = AuditKind.ALL_LANES_WRITTEN in kind
        known = self.whole if everywhere else self.written | self.whole
        defines = [r for r in writes if not _rows(r) <= known]
        for registers in reads:
            self.looked_at |= _rows(registers)
        for registers in writes:
            self.written |= _rows(registers)
            self.looked_at |= _rows(registers)
            self.whole |= _rows(registers) if everywhere else set()
        to_exec = bool(instruction.operands) and instruction.operands[0].startswith("exec")
        if to_exec or _CHANGES_EXEC.search(instruction.mnemonic):
            self.looked_at, self.written = set(), set()
        return exposed, defines


def _rows(registers: Range) -> set[int]:
    """The rows of a range of vector registers; empty for scalar registers."""
    first, count = registers
    return set() if count & _SCALAR_RANGE else set(range(first, first + count))


def audit_instruction(
    instruction: Instruction, vector_registers: int, registers: DefinedRegisters | None = None
) -> bytes:
    """The bytes of one ``AuditInst``.

    Args:
        instruction: The instruction.
        vector_registers: Rows before the accumulation registers.
        registers: The registers that are known to be defined there; default: none.
    """
    kind = kind_of(instruction)
    waits = bool(kind & AuditKind.WAITS)
    vector, local = _limits(instruction) if waits else (NO_LIMIT, NO_LIMIT)
    alignment = next((n for p, n in _ALIGNMENT if p.match(instruction.mnemonic)), 0)
    written = destinations(instruction, kind)
    operands = [] if waits else list(instruction.operands)
    sources = operands[0 if reads_destination(instruction.mnemonic) else written :]
    reads, writes = (
        [r for text in texts if (r := _range(text, vector_registers)) is not None][:count]
        for texts, count in ((sources, READS), (operands[:written], WRITES))
    )
    exposed, defines = (registers or DefinedRegisters()).step(instruction, kind, reads, writes)
    words: list[int] = []
    for ranges, first, count in ((reads, exposed, READS), (writes, defines, WRITES)):
        ordered = first + [r for r in ranges if r not in first]
        words += [word for pair in ordered for word in pair] + [0, 0] * (count - len(ordered))
    return _LAYOUT.pack(int(kind), vector, local, alignment, len(exposed), len(defines), *words)


def audit_table(decoded: DecodedKernel) -> bytes:
    """The table of a kernel, by source instruction."""
    rows = decoded.builder.vector_registers
    heads = {block.first for block in decoded.builder.blocks}
    table, registers = [], DefinedRegisters()
    for number, instruction in enumerate(decoded.instructions):
        registers = DefinedRegisters() if number in heads else registers
        table.append(audit_instruction(instruction, rows, registers))
    return b"".join(table)
