"""Which registers instructions read and write, and which values are not read again.

It rests on the assembler text, as the table of the audit does (audit_tables.py). Where the text
leaves doubts, a register counts as read and as not overwritten.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from kernel_gym.sim.asm.operands import EXEC, VCC, parse_operand
from kernel_gym.sim.asm.text import Instruction
from kernel_gym.sim.compiler.audit_tables import destinations, kind_of, reads_destination

SCALARS = 1 << 16  # scalar register n is number SCALARS + n; vector rows are their own numbers
MASK_VCC = frozenset({SCALARS + VCC, SCALARS + VCC + 1})
_MASK_EXEC = frozenset({SCALARS + EXEC, SCALARS + EXEC + 1})

# Full 32-bit results; not those that keep a part of the old word.
_WHOLE = re.compile(
    r"^v_(?!writelane|cvt_pk|cvt_sr|cvt_scale|ashr_pk|swap|permlane|\w*mix)\w+_[fiub](32|64)$"
)
_WHOLE_LOADS = re.compile(
    r"^(global|flat|buffer)_load_dword(x[234])?$|^ds_read2?(st64)?_b(32|64|96|128)$"
)
_CONDITIONAL_SCALARS = re.compile(r"^s_(cmov|bitset)")
_ACCUMULATING_SCALARS = re.compile(r"^s_(addk|mulk)")
_CROSS_LANE = re.compile(
    r"^v_(readlane|readfirstlane|permlane|mfma|smfmac)|^ds_(b?permute|swizzle)"
)
_READS_VCC = re.compile(r"^v_div_fmas|^s_cbranch_vcc")
_CHANGES_EXEC = re.compile(r"saveexec|wrexec|^v_cmpx")


@dataclass(frozen=True, slots=True)
class RegisterEffects:
    """The effect of an instruction on registers.

    Attributes:
        reads: Registers it reads.
        writes: Registers it writes.
        whole: Written registers that keep nothing of their old value in active lanes.
        lanewise: Whether every lane reads only its own values.
        changes_exec: Whether it writes EXEC.
    """

    reads: frozenset[int]
    writes: frozenset[int]
    whole: frozenset[int]
    lanewise: bool = True
    changes_exec: bool = False


@lru_cache(maxsize=65536)
def registers_of(text: str, vector_registers: int) -> range:
    """The registers that an operand names."""
    operand = parse_operand(text)
    if operand.is_vector:
        first = operand.index + (vector_registers if operand.kind == "a" else 0)
    elif operand.kind == "s":
        first = SCALARS + operand.index
    else:
        return range(0)
    return range(first, first + operand.count)


def _union(texts: Iterable[str], vector_registers: int) -> frozenset[int]:
    return frozenset(n for text in texts for n in registers_of(text, vector_registers))


class _Traits(NamedTuple):
    """The properties of an instruction that do not depend on its operands."""

    destinations: int
    first_source: int
    vector_whole: bool
    scalar_whole: bool
    lanewise: bool
    changes_exec: bool
    reads_vcc: bool


@lru_cache(maxsize=4096)
def _traits(mnemonic: str, encoding: str, modifiers: frozenset[str]) -> _Traits:
    bare = Instruction(mnemonic, encoding, (), dict.fromkeys(modifiers, ""), None, "")
    count = destinations(bare, kind_of(bare))
    conditional = bool(_CONDITIONAL_SCALARS.match(mnemonic))
    accumulates = reads_destination(mnemonic) or bool(_ACCUMULATING_SCALARS.match(mnemonic))
    rearranged = encoding not in ("", "e32", "e64") or "op_sel" in modifiers
    return _Traits(
        destinations=count,
        first_source=0 if conditional or accumulates else count,
        vector_whole=bool(_WHOLE.match(mnemonic) or _WHOLE_LOADS.match(mnemonic))
        and not rearranged,
        scalar_whole=not conditional,
        lanewise=not _CROSS_LANE.match(mnemonic) and "dpp" not in encoding,
        changes_exec=bool(_CHANGES_EXEC.search(mnemonic)),
        reads_vcc=bool(_READS_VCC.match(mnemonic)),
    )


def facts_of(instruction: Instruction, vector_registers: int) -> RegisterEffects:
    """The facts of an instruction.

    Args:
        instruction: The instruction.
        vector_registers: Rows before the accumulation registers.
    """
    operands = instruction.operands
    modifiers = frozenset(instruction.modifiers)
    traits = _traits(instruction.mnemonic, instruction.encoding, modifiers)
    reads = _union(operands[traits.first_source :], vector_registers)
    writes = _union(operands[: traits.destinations], vector_registers)
    if traits.reads_vcc:
        reads |= MASK_VCC
    whole = frozenset(
        n for n in writes if (traits.vector_whole if n < SCALARS else traits.scalar_whole)
    )
    changes_exec = traits.changes_exec or not writes.isdisjoint(_MASK_EXEC)
    return RegisterEffects(reads, writes, whole, traits.lanewise, changes_exec)


class BlockFlow:
    """The instructions of a basic block. Single instructions can be removed.

    Attributes:
        facts: Facts by number of the instruction, ascending.
    """

    def __init__(self, facts: Mapping[int, RegisterEffects]) -> None:
        """Start with the given instructions."""
        self.facts = dict(facts)
        self._touching: dict[int, list[int]] = {}
        for number, each in self.facts.items():
            for register in each.reads | each.writes:
                self._touching.setdefault(register, []).append(number)
        self._exec_changes = [n for n, each in self.facts.items() if each.changes_exec]

    def _touches(self, register: int) -> list[int]:
        return self._touching.get(register, [])

    def definition(self, register: int, before: int, without: Set[int] = frozenset()) -> int:
        """The instruction that wrote a register last; -1 if it is in another block."""
        touches = self._touches(register)
        for i in range(bisect_left(touches, before) - 1, -1, -1):
            number = touches[i]
            facts = self.facts.get(number)
            if facts and number not in without and register in facts.writes:
                return number
        return -1

    def same_lanes(self, first: int, last: int) -> bool:
        """Whether EXEC is the same at two instructions."""
        changes = self._exec_changes
        return bisect_left(changes, first) == bisect_right(changes, last)

    def is_dead(self, register: int, behind: int, live_at_end: Set[int]) -> bool:
        """Whether no instruction reads the value of a register after a given one."""
        touches = self._touches(register)
        for number in touches[bisect_right(touches, behind) :]:
            facts = self.facts.get(number)
            if facts is None:
                continue
            if register in facts.reads:
                return False
            lanes_same = register >= SCALARS or self.same_lanes(behind, number)
            if register in facts.whole and lanes_same:
                return True
        return register not in live_at_end

    def exposed(self) -> set[int]:
        """Registers that the block may read with their values from before it.

        A write hides a vector register from later reads only while EXEC stays the same, and only
        from instructions in which every lane reads its own values.
        """
        exposed: set[int] = set()
        hidden: set[int] = set()
        for each in self.facts.values():
            visible = each.reads - hidden
            if not each.lanewise:
                visible |= {n for n in each.reads if n < SCALARS}
            exposed |= visible
            hidden |= each.whole
            if each.changes_exec:
                hidden = {n for n in hidden if n >= SCALARS}
        return exposed


def live_at_ends(
    blocks: Sequence[BlockFlow], successors: Sequence[Sequence[int]]
) -> list[set[int]]:
    """The registers that may still be read after each block.

    A block overwrites scalar registers completely, but vector registers only in the active lanes.
    So vector registers stay alive on all paths to a read.
    """
    needs = [block.exposed() for block in blocks]
    gone = [
        {n for each in block.facts.values() for n in each.whole if n >= SCALARS} for block in blocks
    ]
    ends: list[set[int]] = [set() for _ in blocks]
    changed = True
    while changed:
        changed = False
        for number in reversed(range(len(blocks))):
            now = set().union(*(needs[s] | (ends[s] - gone[s]) for s in successors[number]))
            changed |= now != ends[number]
            ends[number] = now
    return ends
