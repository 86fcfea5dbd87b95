"""Decodes memory instructions: global, flat, buffer, scratch and LDS."""

from __future__ import annotations

import re

from kernel_gym.sim.asm.errors import UnsupportedInstruction
from kernel_gym.sim.asm.operands import OperandText, literal32, parse_operand
from kernel_gym.sim.asm.text import Instruction
from kernel_gym.sim.compiler.program import NO_SOURCE, SCALAR, VECTOR, ProgramBuilder, Source
from kernel_gym.sim.layouts import Atomic

# Atomic operations by their names in the assembler text.
GLOBAL_ATOMICS = {
    "add": Atomic.ADD,
    "sub": Atomic.SUB,
    "smin": Atomic.MIN_SIGNED,
    "umin": Atomic.MIN_UNSIGNED,
    "smax": Atomic.MAX_SIGNED,
    "umax": Atomic.MAX_UNSIGNED,
    "and": Atomic.AND,
    "or": Atomic.OR,
    "xor": Atomic.XOR,
    "inc": Atomic.INCREMENT,
    "dec": Atomic.DECREMENT,
    "swap": Atomic.SWAP,
    "cmpswap": Atomic.COMPARE_SWAP,
    "add_f32": Atomic.ADD_FLOAT,
    "min_f32": Atomic.MIN_FLOAT,
    "max_f32": Atomic.MAX_FLOAT,
    "pk_add_f16": Atomic.ADD_PACKED_F16,
    "pk_add_bf16": Atomic.ADD_PACKED_BF16,
    "add_f64": Atomic.ADD_FLOAT,
    "min_f64": Atomic.MIN_FLOAT,
    "max_f64": Atomic.MAX_FLOAT,
}
LDS_ATOMICS = {
    "add_u32": Atomic.ADD,
    "sub_u32": Atomic.SUB,
    "min_i32": Atomic.MIN_SIGNED,
    "min_u32": Atomic.MIN_UNSIGNED,
    "max_i32": Atomic.MAX_SIGNED,
    "max_u32": Atomic.MAX_UNSIGNED,
    "and_b32": Atomic.AND,
    "or_b32": Atomic.OR,
    "xor_b32": Atomic.XOR,
    "inc_u32": Atomic.INCREMENT,
    "dec_u32": Atomic.DECREMENT,
    "wrxchg_b32": Atomic.SWAP,
    "cmpst_b32": Atomic.COMPARE_SWAP,
    "add_f32": Atomic.ADD_FLOAT,
    "min_f32": Atomic.MIN_FLOAT,
    "max_f32": Atomic.MAX_FLOAT,
    "pk_add_f16": Atomic.ADD_PACKED_F16,
    "pk_add_bf16": Atomic.ADD_PACKED_BF16,
}
WIDE_ATOMIC, RETURNS = 0x100, 0x200
_COMMUTING = frozenset(range(Atomic.XOR + 1))  # integer operations whose order does not matter
_LDS_WIDE = re.compile(r"_([iufb])64$")
_TWO_ADDRESSES = re.compile(r"^(read|write|wrxchg)2(st64)?(?:_rtn)?_b(32|64)$")
_BY_M0 = ("read_addtid_b32", "write_addtid_b32", "append", "consume")


def swizzle_pattern(text: str) -> int:
    """The offset field that ``swizzle(MODE, ...)`` stands for.

    Raises:
        UnsupportedInstruction: If the mode is not known.
    """
    match = re.match(r"swizzle\((\w+),\s*(.*)\)", text)
    if not match:
        return int(text, 0)
    mode, args = match.group(1), [part.strip() for part in match.group(2).split(",")]
    if mode == "QUAD_PERM":
        return 0x8000 | sum(int(lane) << (2 * i) for i, lane in enumerate(args))
    if mode == "SWAP":
        return (int(args[0]) << 10) | 0x1F
    if mode == "REVERSE":
        return ((int(args[0]) - 1) << 10) | 0x1F
    if mode == "BROADCAST":
        return (0x1F & ~(int(args[0]) - 1)) | (int(args[1]) << 5)
    if mode == "BITMASK_PERM":
        pattern = 0
        for i, char in enumerate(reversed(args[0].strip('"'))):
            pattern |= {"p": 1, "i": 1 | 1 << 10, "1": 1 << 5, "0": 0}[char] << i
        return pattern
    raise UnsupportedInstruction(f"swizzle mode {mode} is not supported")


class MemoryDecoder:
    """Decodes the memory instructions of one kernel into a program builder.

    Attributes:
        ordered: Whether results may depend on the order of workgroups (atomics that return
            values or do not commute, polling loads), so that they must run one after another.
    """

    def __init__(self, builder: ProgramBuilder) -> None:
        """Decode into the given builder."""
        self._builder = builder
        self.ordered = False

    def decode(self, instruction: Instruction) -> None:
        """Append the operation of a memory instruction.

        Raises:
            UnsupportedInstruction: If the operation, an operand or a modifier is unknown.
        """
        segment, _, operation = instruction.mnemonic.partition("_")
        if segment == "ds":
            self._lds(instruction, operation)
        elif segment == "buffer":
            self._buffer(instruction, operation)
        else:
            self._flat(instruction, segment, operation)

    def _vector(self, operand: OperandText) -> Source:
        if not operand.is_vector:
            raise UnsupportedInstruction(f"operand {operand.text!r} is not a vector register")
        return Source(self._builder.row(operand.kind, operand.index), VECTOR)

    def _address_source(self, operand: OperandText | None) -> Source:
        if operand is None or operand.kind == "off":
            return NO_SOURCE
        return self._vector(operand)

    def _scalar_base(self, operand: OperandText | None) -> Source:
        if operand is None or operand.kind != "s":
            return NO_SOURCE
        return Source(operand.index, SCALAR)

    def _flat(self, instruction: Instruction, segment: str, operation: str) -> None:
        modifiers = instruction.modifiers
        operands = [parse_operand(text) for text in instruction.operands]
        data, flags, returns = None, 0, False
        if operation.startswith("atomic_"):
            flags = self._atomic_flags(operation, modifiers)
            returns = bool(flags & RETURNS)
            destination = operands[0] if returns else None
            rest = operands[int(returns) :]
            address, data, base = rest[0], rest[1], rest[2] if len(rest) > 2 else None
            name = f"{segment}_atomic"
        elif operation.startswith("load_lds_"):
            destination, address = None, operands[0]
            base = operands[1] if len(operands) > 1 else None
            name = f"{segment}_{operation}"
        elif operation.startswith("store_"):
            destination = None
            address, data = operands[0], operands[1]
            base = operands[2] if len(operands) > 2 else None
            name = f"{segment}_{operation}"
        else:
            destination, address = operands[0], operands[1]
            base = operands[2] if len(operands) > 2 else None
            name = f"{segment}_{operation}"
        self._builder.emit(
            name,
            dst=self._vector(destination).index if destination else 0,
            sources=(
                self._address_source(address),
                self._scalar_base(base),
                self._vector(data) if data else NO_SOURCE,
            ),
            imm=int(modifiers.get("offset", "0"), 0),
            aux=self._polls(operation, modifiers),
            flags=flags,
        )

    def _polls(self, operation: str, modifiers: dict[str, str]) -> int:
        """Returns 1 for a load that bypasses caches, because it may wait for another workgroup."""
        polls = operation.startswith("load") and bool({"sc0", "sc1", "glc"} & modifiers.keys())
        self.ordered |= polls
        return int(polls)

    def _atomic_flags(self, operation: str, modifiers: dict[str, str]) -> int:
        name = operation[len("atomic_") :]
        wide = name.endswith(("_x2", "_f64"))
        number = GLOBAL_ATOMICS.get(name.removesuffix("_x2"))
        if number is None:
            raise UnsupportedInstruction(f"atomic operation {name} is not implemented")
        returns = "sc0" in modifiers or "glc" in modifiers
        self.ordered |= returns or number not in _COMMUTING
        return number | (WIDE_ATOMIC if wide else 0) | (RETURNS if returns else 0)

    def _buffer(self, instruction: Instruction, operation: str) -> None:
        modifiers = instruction.modifiers
        operands = [parse_operand(text) for text in instruction.operands]
        to_lds = "lds" in modifiers
        if to_lds:
            operation = operation.replace("load_", "load_lds_")
            operands = operands if len(operands) == 4 else [operands[0], *operands]
        if len(operands) != 4:
            raise UnsupportedInstruction(f"found {len(operands)} operands, expected 4")
        data, address, resource, offset = operands
        flags, name = 0, f"buffer_{operation}"
        if operation.startswith("atomic_"):
            flags, name = self._atomic_flags(operation, modifiers), "buffer_atomic"
        both = "offen" in modifiers and "idxen" in modifiers
        vector = self._vector(address) if address.is_vector else NO_SOURCE
        index = vector if "idxen" in modifiers else NO_SOURCE
        voffset = vector if "offen" in modifiers else NO_SOURCE
        if both:
            voffset = Source(vector.index + 64, VECTOR)
        row = NO_SOURCE if to_lds else self._vector(data)
        self._builder.emit(
            name,
            dst=row.index,
            dst2=self._buffer_offset(offset),
            sources=(voffset, Source(resource.index, SCALAR), row, index),
            imm=int(modifiers.get("offset", "0"), 0),
            aux=self._polls(operation, modifiers),
            flags=flags,
        )

    def _buffer_offset(self, operand: OperandText) -> int:
        if operand.kind == "s":
            return operand.index
        return self._builder.scalar_constant(literal32(operand, "b32")).index

    # ---- LDS
    def _lds(self, instruction: Instruction, operation: str) -> None:
        operands = [parse_operand(text) for text in instruction.operands]
        modifiers = instruction.modifiers
        two = _TWO_ADDRESSES.match(operation)
        if operation == "gws_barrier":  # the barrier of a cooperative launch
            self.ordered = True
            self._builder.emit(instruction.mnemonic)
        elif operation == "swizzle_b32":
            self._permute(instruction, operands, swizzle_pattern(modifiers.get("offset", "0")))
        elif operation in ("bpermute_b32", "permute_b32"):
            self._permute(instruction, operands, int(modifiers.get("offset", "0"), 0))
        elif two:
            self._two_addresses(two, operands, modifiers)
        elif operation in _BY_M0:
            self._by_m0(instruction, operation, operands[0])
        elif operation.startswith("read"):
            self._builder.emit(
                instruction.mnemonic,
                dst=self._vector(operands[0]).index,
                sources=(self._vector(operands[1]),),
                aux=int(modifiers.get("offset", "0"), 0),
            )
        elif operation.startswith("write_b"):
            self._builder.emit(
                instruction.mnemonic,
                sources=(self._vector(operands[0]), NO_SOURCE, self._vector(operands[1])),
                aux=int(modifiers.get("offset", "0"), 0),
            )
        else:
            self._lds_atomic(operation, operands, modifiers)

    def _by_m0(self, instruction: Instruction, operation: str, operand: OperandText) -> None:
        row, offset = self._vector(operand), int(instruction.modifiers.get("offset", "0"), 0)
        sources = (NO_SOURCE, NO_SOURCE, row) if operation.startswith("write") else ()
        self._builder.emit(instruction.mnemonic, dst=row.index, sources=sources, aux=offset)

    def _permute(self, instruction: Instruction, operands: list[OperandText], pattern: int) -> None:
        self._builder.emit(
            instruction.mnemonic,
            dst=self._vector(operands[0]).index,
            sources=tuple(self._vector(operand) for operand in operands[1:]),
            aux=pattern,
        )

    def _two_addresses(
        self, match: re.Match[str], operands: list[OperandText], modifiers: dict[str, str]
    ) -> None:
        direction, stride, bits = match.groups()
        scale = int(bits) // 8 * (64 if stride else 1)
        offsets = [scale * int(modifiers.get(f"offset{i}", "0"), 0) for i in range(2)]
        name = f"ds_{direction}2_b{bits}"
        if direction == "read":
            dst, address, data = self._vector(operands[0]).index, operands[1], []
        elif direction == "wrxchg":
            name = f"ds_wrxchg2_rtn_b{bits}"
            dst, address, data = self._vector(operands[0]).index, operands[1], operands[2:4]
        else:
            dst, address, data = 0, operands[0], operands[1:3]
        sources = (self._vector(address), NO_SOURCE, *map(self._vector, data))
        self._builder.emit(name, dst=dst, sources=sources, aux=offsets[0], imm=offsets[1])

    def _lds_atomic(
        self, operation: str, operands: list[OperandText], modifiers: dict[str, str]
    ) -> None:
        returns = "_rtn" in operation
        plain = operation.replace("_rtn", "")
        wide = bool(_LDS_WIDE.search(plain))
        number = LDS_ATOMICS.get(_LDS_WIDE.sub(r"_\g<1>32", plain))
        if number is None:
            raise UnsupportedInstruction(f"LDS operation {operation} is not implemented")
        rest = operands[int(returns) :]
        self._builder.emit(
            "ds_atomic",
            dst=self._vector(operands[0]).index if returns else 0,
            sources=(self._vector(rest[0]), NO_SOURCE, *map(self._vector, rest[1:3])),
            aux=int(modifiers.get("offset", "0"), 0),
            flags=number | (WIDE_ATOMIC if wide else 0) | (RETURNS if returns else 0),
        )
