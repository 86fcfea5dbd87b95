"""A decoded program as basic blocks, with register flow and known constants."""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gym.sim.asm.operands import SCALAR_CONSTANTS
from kernel_gym.sim.asm.text import Instruction
from kernel_gym.sim.compiler.dataflow import (
    SCALARS,
    BlockFlow,
    RegisterEffects,
    facts_of,
    live_at_ends,
)
from kernel_gym.sim.compiler.program import (
    CONSTANT,
    LANES,
    MODIFIED,
    SCALAR,
    VECTOR,
    OperationRecord,
    ProgramBuilder,
    Source,
)

_NOTHING = RegisterEffects(frozenset(), frozenset(), frozenset())
_MOVES = ("v_mov_b32", "v_not_b32", "s_mov_b32")
_ENDS = ("s_endpgm", "s_trap")
_END = 1 << 30  # after all instructions


@dataclass
class ProgramBlock:
    """A basic block.

    Attributes:
        number: Its number.
        head: Its first record.
        records: The other records, by instruction.
        flow: Register flow of its instructions.
    """

    number: int
    head: OperationRecord
    records: dict[int, list[OperationRecord]]
    flow: BlockFlow


def registers_of_source(source: Source) -> list[int]:
    """The registers that a 32-bit source reads, numbered as in dataflow.py."""
    if source.space & ~MODIFIED == VECTOR:
        return [source.index // LANES]
    return [SCALARS + source.index] if source.space == SCALAR else []


def _blocks(builder: ProgramBuilder, instructions: list[Instruction]) -> list[ProgramBlock]:
    head = builder.handler("block_head").number
    blocks: list[ProgramBlock] = []
    for record in builder.records:
        if record.handler == head:
            blocks.append(ProgramBlock(len(blocks), record, {}, BlockFlow({})))
        elif blocks:
            blocks[-1].records.setdefault(record.index, []).append(record)
    for block, limits in zip(blocks, builder.blocks, strict=True):
        known = range(limits.first, limits.last)
        block.flow = BlockFlow(
            {
                number: facts_of(instructions[number], builder.vector_registers)
                if number in known
                else _NOTHING
                for number in block.records
            }
        )
    return blocks


def _successors(
    builder: ProgramBuilder, instructions: list[Instruction], blocks: list[ProgramBlock]
) -> list[list[int]]:
    """The blocks to which control may pass from each block."""
    positions = {id(record): i for i, record in enumerate(builder.records)}
    numbers = {positions[id(block.head)]: i for i, block in enumerate(blocks)}
    successors: list[list[int]] = []
    for i, limits in enumerate(builder.blocks):
        mnemonic = instructions[limits.last - 1].mnemonic
        behind = [i + 1] if i + 1 < len(blocks) else []
        if mnemonic.startswith(_ENDS):
            successors.append([])
        elif mnemonic.startswith(("s_branch", "s_cbranch")):
            target = numbers.get(blocks[i].records[limits.last - 1][0].imm)
            taken = [] if target is None else [target]
            successors.append(taken + (behind if mnemonic != "s_branch" else []))
        else:
            successors.append(behind)
    return successors


class ProgramFlow:
    """A program as basic blocks, with the facts that need all of them.

    Attributes:
        builder: The decoded program.
        blocks: Its blocks.
        live: The registers that may still be read after each block.
    """

    def __init__(self, builder: ProgramBuilder, instructions: list[Instruction]) -> None:
        """Analyse a decoded program with its source instructions."""
        self.builder = builder
        self.blocks = _blocks(builder, instructions)
        flows = [block.flow for block in self.blocks]
        behind = _successors(builder, instructions, self.blocks)
        self.live = live_at_ends(flows, behind)
        self._moves = {builder.handler(name).number: name for name in _MOVES}
        self._before: list[list[int]] = [[] for _ in self.blocks]
        for number, successors in enumerate(behind):
            for successor in successors:
                self._before[successor].append(number)

    def constant(self, block: ProgramBlock, source: Source, number: int) -> int | None:
        """The word that a source holds in all active lanes before an instruction, if known."""
        known = self._literal(source)
        if known is not None or source.flags or source.space not in (VECTOR, SCALAR):
            return known
        words = self._words(block, registers_of_source(source)[0], number)
        return words.pop() if len(words) == 1 else None

    def _literal(self, source: Source) -> int | None:
        if source.space == CONSTANT and not source.flags:
            return self.builder.constant_rows[source.index // LANES]
        if source.space == SCALAR and source.index >= SCALAR_CONSTANTS:
            return self.builder.scalar_constants[source.index - SCALAR_CONSTANTS]
        return None

    def _words(self, block: ProgramBlock, register: int, number: int) -> set[int | None]:
        """The words that a register may hold; None stands for any word."""
        words: set[int | None] = set()
        seen: set[int] = set()
        pending = [(block, number)]
        while pending:
            block, number = pending.pop()
            place = block.flow.definition(register, number)
            if register < SCALARS and not block.flow.same_lanes(place, number):
                words.add(None)
            elif place >= 0:
                words.add(self._moved(block.records[place]))
            else:
                before = set(self._before[block.number]) - seen
                seen |= before
                pending += [(self.blocks[b], _END) for b in before]
                words |= set() if block.number else {None}
        return words

    def _moved(self, records: list[OperationRecord]) -> int | None:
        """The literal that an instruction writes; None if it writes something else."""
        name = self._moves.get(records[0].handler)
        word = self._literal(records[0].sources[0]) if name and len(records) == 1 else None
        return word if word is None or name != "v_not_b32" else ~word & 0xFFFFFFFF
