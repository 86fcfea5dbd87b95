"""Proves that a kernel waits for its loads on every path, for all arguments.

An audit checks only the paths that a launch takes. Compilers wait on all paths. A kernel with this
proof needs no audit of its waits. A kernel without it may still be correct: an audit must decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kernel_gym.sim.asm.text import Instruction
from kernel_gym.sim.asm.waits import MAX_LOCAL, MAX_VECTOR, Wait, decode_wait
from kernel_gym.sim.compiler.audit_tables import destinations, kind_of, reads_destination
from kernel_gym.sim.compiler.dataflow import registers_of
from kernel_gym.sim.compiler.decode import DecodedKernel
from kernel_gym.sim.layouts import AuditKind

_CALLS = frozenset({"s_swappc_b64", "s_setpc_b64", "s_call_b64"})
_ENDS = frozenset({"s_endpgm", "s_trap"})
_COUNTED = AuditKind.VECTOR_COUNTER | AuditKind.LOCAL_COUNTER | AuditKind.SCALAR_COUNTER
_LDS = -1  # stands for what an operation under way reads or writes there


@dataclass(frozen=True, slots=True)
class _Step:
    """The effect of an instruction on loads under way."""

    wait: Wait | None
    kind: AuditKind
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    barrier: bool


@dataclass(slots=True)
class _Flights:
    """Loads that may be under way, by register: how many operations were issued after each."""

    vector: dict[int, int] = field(default_factory=dict)
    ordered: dict[int, int] = field(default_factory=dict)  # of LDS
    scalar: set[int] = field(default_factory=set)  # these arrive in any order

    def copy(self) -> _Flights:
        return _Flights(dict(self.vector), dict(self.ordered), set(self.scalar))

    def merge(self, other: _Flights) -> bool:
        """Adds the loads under way on another path; returns whether that changed anything."""
        changed = not other.scalar <= self.scalar
        self.scalar |= other.scalar
        for mine, theirs in ((self.vector, other.vector), (self.ordered, other.ordered)):
            for register, age in theirs.items():
                if mine.get(register, age + 1) > age:
                    mine[register] = age
                    changed = True
        return changed

    def wait(self, wait: Wait) -> None:
        if wait.vector is not None:
            self.vector = {r: age for r, age in self.vector.items() if age < wait.vector}
        if wait.local == 0:
            self.ordered, self.scalar = {}, set()
        elif wait.local is not None and not self.scalar:
            self.ordered = {r: age for r, age in self.ordered.items() if age < wait.local}

    def start(self, step: _Step) -> None:
        memory = AuditKind.READS_MEMORY | AuditKind.WRITES_MEMORY
        targets = (*step.writes, _LDS) if step.kind & memory else step.writes
        if step.kind & AuditKind.VECTOR_COUNTER:
            self.vector = {r: a + 1 for r, a in self.vector.items() if a + 1 < MAX_VECTOR}
            self.vector.update(dict.fromkeys(step.writes, 0))
        if step.kind & AuditKind.LOCAL_COUNTER:
            most = MAX_LOCAL if not self.scalar else 1 << 30
            self.ordered = {r: a + 1 for r, a in self.ordered.items() if a + 1 < most}
            self.ordered.update(dict.fromkeys(targets, 0))
        if step.kind & AuditKind.SCALAR_COUNTER:
            self.ordered = {r: a + 1 for r, a in self.ordered.items()}
            self.scalar.update(step.writes)

    def hit(self, step: _Step) -> bool:
        """Whether an instruction uses a register whose load may be under way."""
        if not (self.vector or self.ordered or self.scalar):
            return False
        for register in step.reads:
            if register in self.vector or register in self.ordered or register in self.scalar:
                return True
        kind = step.kind
        return any(
            (register in self.vector and not kind & AuditKind.VECTOR_COUNTER)
            or (register in self.ordered and not kind & AuditKind.LOCAL_COUNTER)
            or (register in self.scalar and not kind & AuditKind.SCALAR_COUNTER)
            for register in step.writes
        )


def _step(instruction: Instruction, vector_registers: int) -> _Step:
    mnemonic = instruction.mnemonic
    if mnemonic == "s_waitcnt":
        return _Step(decode_wait(instruction), AuditKind.WAITS, (), (), False)
    kind = kind_of(instruction)
    count = destinations(instruction, kind)
    first_source = 0 if reads_destination(mnemonic) else count

    def named(texts: Sequence[str]) -> tuple[int, ...]:
        return tuple(n for text in texts for n in registers_of(text, vector_registers))

    operands = instruction.operands
    barrier = mnemonic == "s_barrier"
    return _Step(None, kind, named(operands[first_source:]), named(operands[:count]), barrier)


def _successors(decoded: DecodedKernel) -> list[list[int]]:
    builder, instructions = decoded.builder, decoded.instructions
    head = builder.handler("block_head").number
    branches = {
        i
        for i, each in enumerate(instructions)
        if each.mnemonic.startswith(("s_branch", "s_cbranch"))
    }
    targets: dict[int, int] = {}
    number_at: dict[int, int] = {}
    for place, record in enumerate(builder.records):
        if record.handler == head:
            number_at[place] = len(number_at)
        elif record.index in branches:
            targets[record.index] = record.imm
    behind: list[list[int]] = []
    for number, block in enumerate(builder.blocks):
        last = block.last - 1
        mnemonic = instructions[last].mnemonic
        following = [number + 1] if number + 1 < len(builder.blocks) else []
        if mnemonic in _ENDS:
            following = []
        elif last in targets:
            taken = number_at.get(targets[last])
            following = [] if mnemonic == "s_branch" else following
            following += [] if taken is None else [taken]
        behind.append(following)
    return behind


def waits_everywhere(decoded: DecodedKernel) -> bool:
    """Whether no path through a kernel uses the target of a load that may be under way.

    Args:
        decoded: The kernel.

    Returns:
        True if that is proven; False if a path might use one, or the paths are not known.
    """
    if any(i.mnemonic in _CALLS for i in decoded.instructions):
        return False
    rows = decoded.builder.vector_registers
    steps = [_step(instruction, rows) for instruction in decoded.instructions]
    blocks = decoded.builder.blocks
    behind = _successors(decoded)
    entries: list[_Flights | None] = [_Flights()] + [None] * (len(blocks) - 1)
    pending = {0}
    while pending:
        number = min(pending)
        pending.discard(number)
        entry = entries[number]
        assert entry is not None
        flights = entry.copy()
        if not _runs(flights, steps[blocks[number].first : blocks[number].last]):
            return False
        for successor in behind[number]:
            known = entries[successor]
            if known is None:
                entries[successor] = flights.copy()
                pending.add(successor)
            elif known.merge(flights):
                pending.add(successor)
    return True


def _runs(flights: _Flights, steps: Sequence[_Step]) -> bool:
    """Steps through a block; False if it uses a register too early."""
    for step in steps:
        if step.wait is not None:
            flights.wait(step.wait)
            continue
        if flights.hit(step):
            return False
        if step.kind & _COUNTED:
            flights.start(step)
        if step.barrier and _LDS in flights.ordered:
            return False
    return True
