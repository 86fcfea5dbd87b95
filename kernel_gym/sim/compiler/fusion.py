"""Replaces sequences of vector instructions that compilers always emit together by one operation.

An f32 division has eleven instructions, an exponential six. If no other instruction reads the
values in between, one operation of the engine computes the same values in the same order without
storing them (csrc/ops/vops_division.cpp, csrc/ops/vops_float.cpp). An audited launch runs the
program without fusions.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from kernel_gym.sim.asm.text import Instruction
from kernel_gym.sim.compiler.control_flow import ProgramBlock, ProgramFlow, registers_of_source
from kernel_gym.sim.compiler.dataflow import MASK_VCC, SCALARS
from kernel_gym.sim.compiler.program import (
    MODIFIED,
    NEG32,
    SCALAR,
    VECTOR,
    OperationRecord,
    ProgramBuilder,
    Source,
)


class FusionStep(NamedTuple):
    """An instruction of a fusion.

    Attributes:
        result: Name of its result.
        operation: The engine's operation.
        sources: Names of results or of the fusion's sources; ``-x`` is negated.
        mask: Name of its second result, or of the VCC that the operation reads.
    """

    result: str
    operation: str
    sources: tuple[str, ...]
    mask: str = ""


class Fusion(NamedTuple):
    """A sequence of instructions that one operation replaces.

    Attributes:
        operation: The engine's operation.
        sources: Names of its sources, in order.
        steps: The instructions; the last one has the result.
    """

    operation: str
    sources: tuple[str, ...]
    steps: tuple[FusionStep, ...]


FUSIONS = (
    Fusion(
        "division_f32",
        ("denominator", "numerator"),
        (
            FusionStep("d", "v_div_scale_f32", ("denominator", "denominator", "numerator")),
            FusionStep("n", "v_div_scale_f32", ("numerator", "denominator", "numerator"), "scaled"),
            FusionStep("guess", "v_rcp_f32", ("d",)),
            FusionStep("error", "v_fma_f32", ("-d", "guess", "1.0")),
            FusionStep("inverse", "v_fma_f32", ("error", "guess", "guess")),
            FusionStep("first", "v_mul_f32", ("n", "inverse")),
            FusionStep("rest", "v_fma_f32", ("-d", "first", "n")),
            FusionStep("second", "v_fma_f32", ("rest", "inverse", "first")),
            FusionStep("remainder", "v_fma_f32", ("-d", "second", "n")),
            FusionStep("quotient", "v_div_fmas_f32", ("remainder", "inverse", "second"), "scaled"),
            FusionStep("result", "v_div_fixup_f32", ("quotient", "denominator", "numerator")),
        ),
    ),
    Fusion(
        "scaled_exp_f32",
        ("x",),
        (
            FusionStep("small", "v_cmp_gt_f32", ("-126.0", "x")),
            FusionStep("shift", "v_cndmask_b32", ("0", "64.0", "small")),
            FusionStep("shifted", "v_add_f32", ("x", "shift")),
            FusionStep("power", "v_exp_f32", ("shifted",)),
            FusionStep("back", "v_cndmask_b32", ("0", "-64", "small")),
            FusionStep("result", "v_ldexp_f32", ("power", "back")),
        ),
    ),
)
_LITERALS = {
    "0": 0,
    "1.0": 0x3F800000,
    "64.0": 0x42800000,
    "-126.0": 0xC2FC0000,
    "-64": 0xFFFFFFC0,
}
_READS_VCC = "v_div_fmas_f32"
MAX_MASK_COPIES = 4  # moves of a mask that are followed
# An instruction may name registers at run time only, or control may go anywhere.
_UNKNOWN_FLOW = ("s_getpc", "s_setpc", "s_swappc", "s_call", "s_set_gpr_idx")


@dataclass
class _Match:
    """The instructions of a fusion in a block.

    Attributes:
        places: Instructions by the names of their results.
        copies: Instructions that move a mask from one scalar pair to another.
        sources: The fusion's sources, and the instructions that wrote them last.
    """

    places: dict[str, int] = field(default_factory=dict)
    copies: set[int] = field(default_factory=set)
    sources: dict[str, tuple[Source, list[int]]] = field(default_factory=dict)

    @property
    def members(self) -> set[int]:
        return {*self.places.values(), *self.copies}


def _pair(source: Source) -> frozenset[int]:
    return frozenset({SCALARS + source.index, SCALARS + source.index + 1})


class _Matcher:
    """Searches for a fusion that ends with a given instruction of a block."""

    def __init__(self, program: ProgramFlow, fusion: Fusion, block: ProgramBlock) -> None:
        self._program, self._block, self._fusion = program, block, fusion
        self._steps = {step.result: step for step in fusion.steps}
        masks = {step.mask: step for step in fusion.steps if step.operation != _READS_VCC}
        self._steps_of_masks = {**self._steps, **masks}
        self.match = _Match()

    def step(self, step: FusionStep, number: int) -> bool:
        """Whether an instruction is the given step, with the right sources."""
        if step.result in self.match.places:
            return self.match.places[step.result] == number
        self.match.places[step.result] = number
        records = self._block.records[number]
        wanted = self._program.builder.handlers[step.operation].number
        if len(records) != 1 or records[0].handler != wanted:
            return False
        if step.operation == _READS_VCC and not self._mask(step.mask, MASK_VCC, number):
            return False
        pairs = zip(step.sources, records[0].sources, strict=False)
        return all(self._source(name, source, number) for name, source in pairs)

    def _source(self, name: str, source: Source, number: int) -> bool:
        if name in _LITERALS:
            return self._program.constant(self._block, source, number) == _LITERALS[name]
        if name.startswith("-"):
            if source.space != VECTOR | MODIFIED or source.flags != NEG32:
                return False
            name, source = name[1:], Source(source.index, VECTOR)
        if source.flags:
            return False
        if name in self._fusion.sources:
            definition = self._block.flow.definition
            value = source, [definition(r, number) for r in registers_of_source(source)]
            return self.match.sources.setdefault(name, value) == value
        if source.space == SCALAR:
            return self._mask(name, _pair(source), number)
        if source.space != VECTOR:
            return False
        place = self._block.flow.definition(registers_of_source(source)[0], number)
        return place >= 0 and self.step(self._steps[name], place)

    def _mask(self, name: str, pair: frozenset[int], number: int) -> bool:
        places = {self._block.flow.definition(register, number) for register in pair}
        place = places.pop()
        if places or place < 0:
            return False
        records = self._block.records[place]
        if records[0].handler == self._program.builder.handlers["s_mov_b64"].number:
            source = records[0].sources[0]
            if len(self.match.copies) == MAX_MASK_COPIES:
                return False
            self.match.copies.add(place)
            return source.space == SCALAR and self._mask(name, _pair(source), place)
        return self.step(self._steps_of_masks[name], place)


def _fuse(
    program: ProgramFlow, fusion: Fusion, block: ProgramBlock, last: int, live: set[int]
) -> bool:
    """Replaces the instructions of a fusion that ends with `last`; False if there is none."""
    matcher = _Matcher(program, fusion, block)
    if not matcher.step(fusion.steps[-1], last):
        return False
    match, flow = matcher.match, block.flow
    members = sorted(match.members)
    if not flow.same_lanes(members[0], last):
        return False
    facts = {number: flow.facts[number] for number in members}
    sources = [match.sources[name][0] for name in fusion.sources]
    reads = frozenset(r for source in sources for r in registers_of_source(source))
    for number in members:
        flow.facts.pop(number)
    kept = all(
        [flow.definition(r, last) for r in registers_of_source(source)] == definitions
        for source, definitions in match.sources.values()
    )
    flow.facts[last] = replace(facts[last], reads=frozenset())  # its own sources are checked above
    if not kept or not all(
        flow.is_dead(register, number, live)
        for number in members[:-1]
        for register in facts[number].writes
    ):
        flow.facts.update(facts)
        return False
    flow.facts[last] = replace(facts[last], reads=reads)
    replaced = [record for number in members for record in block.records[number]]
    fused = OperationRecord(
        program.builder.handler(fusion.operation).number,
        dst=replaced[-1].dst,
        sources=tuple(sources),
        imm=len(replaced),
        index=last,
    )
    for number in members[:-1]:
        del block.records[number]
    block.records[last] = [
        fused,
        *replaced[1:],
    ]  # the operation skips those, so that no record moves
    return True


def fused_program(builder: ProgramBuilder, instructions: list[Instruction]) -> bytes | None:
    """The program with fused operations, packed for the engine; None if nothing can be fused.

    Each block starts at the same record as in the builder's program.

    Args:
        builder: The decoded program.
        instructions: Its source instructions.
    """
    lasts = {builder.handler(fusion.steps[-1].operation).number: fusion for fusion in FUSIONS}
    if not any(record.handler in lasts for record in builder.records):
        return None
    if any(instruction.mnemonic.startswith(_UNKNOWN_FLOW) for instruction in instructions):
        return None
    program = ProgramFlow(builder, instructions)
    changed = False
    for block, live in zip(program.blocks, program.live, strict=True):
        for number, records in list(block.records.items()):
            fusion = lasts.get(records[0].handler)
            changed |= fusion is not None and _fuse(program, fusion, block, number, live)
    if not changed:
        return None
    ordered = [
        record
        for block in program.blocks
        for record in (block.head, *(r for _, rs in sorted(block.records.items()) for r in rs))
    ]
    return b"".join(record.pack() for record in builder.records[: -len(ordered)] + ordered)
