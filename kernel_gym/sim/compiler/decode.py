"""Decodes a kernel of a module into the flat program that the C++ engine executes."""

from __future__ import annotations

import ctypes as ct
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from kernel_gym.sim.asm.data import Storage
from kernel_gym.sim.asm.errors import AsmError, UnsupportedInstruction
from kernel_gym.sim.asm.metadata import refuse_host_calls
from kernel_gym.sim.asm.operands import parse_operand
from kernel_gym.sim.asm.targets import TARGETS
from kernel_gym.sim.asm.text import Function, Instruction, Module
from kernel_gym.sim.asm.waits import check_idle
from kernel_gym.sim.compiler.matrix_ops import MatrixDecoder
from kernel_gym.sim.compiler.memory_ops import MemoryDecoder
from kernel_gym.sim.compiler.mode_ops import emit_mode, initial_mode, is_modal
from kernel_gym.sim.compiler.program import RECORD_SIZE, ProgramBuilder
from kernel_gym.sim.compiler.scalar_ops import (
    EMPTIES_CACHE,
    ENDS_BLOCK,
    IGNORED,
    CodeReference,
    ScalarDecoder,
)
from kernel_gym.sim.compiler.vector_ops import VectorDecoder
from kernel_gym.sim.native import Handler

CODE_BASE = 0x7C0000000000  # made-up address of the first instruction (csrc/ops/salu.cpp)
_CALLS = frozenset({"s_getpc_b64", "s_swappc_b64", "s_setpc_b64"})


def _is_host_call(instruction: Instruction) -> bool:
    return instruction.mnemonic == "s_sendmsg" and "MSG_INTERRUPT" in instruction.operands[0]


@dataclass
class DecodedKernel:
    """A decoded kernel, for the engine and the timing model.

    Attributes:
        builder: The program.
        instructions: All source instructions, in the order of ``Record.index``.
        ordered: Whether workgroups must run one after another for repeatable results.
        data: The table of addresses that the code reads, at its final place; None if it has none.
    """

    builder: ProgramBuilder
    instructions: list[Instruction]
    ordered: bool
    data: ct.Array[ct.c_char] | None = None


@dataclass
class _Linker:
    """Addresses of functions and data."""

    positions: dict[str, int] = field(default_factory=dict)
    addresses: dict[str, int] = field(default_factory=dict)


class _Decoder:
    def __init__(
        self,
        module: Module,
        kernel: str,
        handlers: Mapping[str, Handler],
        storage: Storage,
        exact: bool,
    ) -> None:
        self.module = module
        self.storage = storage
        target = TARGETS[module.target]
        self.functions = _reachable(module, kernel)
        self.instructions = [i for f in self.functions for i in f.instructions]
        vectors, accumulators = _register_counts(self.instructions)
        self.descriptor = module.descriptors.get(kernel, {})
        if any(i.mnemonic.startswith("s_set_gpr_idx") for i in self.instructions):
            # An index reaches registers that no instruction names.
            free = self.descriptor.get("next_free_vgpr", 0)
            vectors = max(vectors, self.descriptor.get("accum_offset", free))
        modal = is_modal(self.instructions, self.descriptor)
        self.builder = ProgramBuilder(handlers, vectors, accumulators)
        self.vector = VectorDecoder(self.builder, target, modal)
        self.scalar = ScalarDecoder(self.builder)
        self.memory = MemoryDecoder(self.builder)
        self.matrix = MatrixDecoder(self.builder, target, exact)
        self.linker = _Linker()

    def run(self) -> DecodedKernel:
        emit_mode(self.builder, initial_mode(self.descriptor))
        for function in self.functions:
            self.function(function)
        self.builder.index = max(0, self.builder.index - 1)
        for record, label, instruction in self.scalar.branches:
            if label not in self.linker.positions:
                raise AsmError(f"label {label} is not defined", instruction.line, instruction.text)
            record.imm = self.linker.positions[label]
        self.close_blocks()
        data = self.link()
        return DecodedKernel(self.builder, self.instructions, self.memory.ordered, data)

    def function(self, function: Function) -> None:
        """Decode one body, with block heads at labels and after branches."""
        builder = self.builder
        labels: dict[int, list[str]] = {}
        for label, position in function.labels.items():
            labels.setdefault(position, []).append(label)
        labels.setdefault(0, []).append(function.name)
        new_block = True
        for i, instruction in enumerate(function.instructions):
            if new_block or i in labels:
                builder.begin_block()
                for label in labels.get(i, ()):
                    self.linker.positions[label] = len(builder.records) - 1
            self.instruction(instruction)
            builder.index += 1
            new_block = instruction.mnemonic in ENDS_BLOCK
        for label in labels.get(len(function.instructions), ()):
            self.linker.positions[label] = len(builder.records)
        builder.emit("s_trap")  # running past the end

    def instruction(self, instruction: Instruction) -> None:
        mnemonic = instruction.mnemonic
        if _is_host_call(instruction):
            self.builder.emit("s_host_call")
            return
        if mnemonic in IGNORED:
            check_idle(instruction)
            if mnemonic in EMPTIES_CACHE:
                self.builder.emit("empty_caches", flags=int(EMPTIES_CACHE[mnemonic]))
            return
        try:
            if mnemonic.startswith(("v_mfma", "v_smfmac")):
                self.matrix.decode(instruction)
            elif mnemonic.startswith("v_"):
                self.vector.decode(instruction)
            elif mnemonic.startswith("s_"):
                self.scalar.decode(instruction)
            else:
                self.memory.decode(instruction)
        except AsmError as error:
            raise type(error)(str(error), instruction.line, instruction.text) from None
        except (IndexError, KeyError, ValueError) as error:
            raise UnsupportedInstruction(
                f"its operands or modifiers are not understood ({error!r})",
                instruction.line,
                instruction.text,
            ) from error

    def close_blocks(self) -> None:
        """Set the number of instructions of every block."""
        blocks = self.builder.blocks
        ends = [block.first for block in blocks[1:]] + [len(self.instructions)]
        heads = iter(blocks)
        head_handler = self.builder.handler("block_head").number
        for block, end in zip(blocks, ends, strict=True):
            block.last = end
        for record in self.builder.records:
            if record.handler == head_handler:
                block = next(heads)
                record.aux = block.last - block.first

    # ---- data and code addresses
    def link(self) -> ct.Array[ct.c_char] | None:
        """Fill in the literals and pointers that depend on addresses."""
        references = self.scalar.references
        if not references:
            return None
        table = {r.symbol: 8 * i for i, r in enumerate(r for r in references if r.through_table)}
        data = ct.create_string_buffer(8 * len(references) + 8)
        base = ct.addressof(data)
        self.linker.addresses = self.storage.addresses
        for name, item in self.module.data.items():
            for place, symbol, addend in item.relocations:
                pointer = (self.address(symbol) + addend).to_bytes(8, "little")
                ct.memmove(self.storage.addresses[name] + place, pointer, 8)
        for symbol, offset in table.items():
            ct.memmove(base + offset, self.address(symbol).to_bytes(8, "little"), 8)
        for reference in references:
            target = (
                base + table[reference.symbol]
                if reference.through_table
                else self.address(reference.symbol)
            )
            self.fill(reference, target)
        return data

    def fill(self, reference: CodeReference, target: int) -> None:
        distance = target + reference.offset - (CODE_BASE + RECORD_SIZE * reference.origin)
        word = distance >> 32 if reference.high else distance
        self.builder.scalar_constants[reference.constant] = word & 0xFFFFFFFF

    def address(self, symbol: str) -> int:
        """The address of a function or data object.

        Raises:
            UnsupportedInstruction: If the text does not define it.
        """
        if symbol in self.linker.addresses:
            return self.linker.addresses[symbol]
        if symbol in self.linker.positions:
            return CODE_BASE + RECORD_SIZE * self.linker.positions[symbol]
        raise UnsupportedInstruction(f"symbol {symbol} is not defined in this text")


def _reachable(module: Module, kernel: str) -> list[Function]:
    """The kernel and, if it computes code addresses, every function that is not a kernel."""
    body = module.functions.get(kernel)
    if body is None or not body.instructions:
        raise AsmError(f"kernel {kernel} has no code")
    if not any(i.mnemonic in _CALLS for i in body.instructions):
        return [body]
    others = [f for name, f in module.functions.items() if name not in module.descriptors]
    return [body, *others]


def _register_counts(instructions: list[Instruction]) -> tuple[int, int]:
    """Vector and accumulation registers that occur, at least one vector register."""
    counts = {"v": 1, "a": 0}
    for operands in {i.operands for i in instructions}:
        for text in operands:
            if text and text[0] in "va-|ns":
                operand = parse_operand(text)
                if operand.is_vector:
                    counts[operand.kind] = max(counts[operand.kind], operand.index + operand.count)
    return counts["v"], counts["a"]


def decode_kernel(
    module: Module,
    kernel: str,
    handlers: Mapping[str, Handler],
    storage: Storage | None = None,
    exact: bool = False,
    served: Collection[str] = (),
) -> DecodedKernel:
    """Decode a kernel.

    Args:
        module: The parsed text.
        kernel: Name of one of its kernels.
        handlers: Operations by name, from the engine library.
        exact: Whether matrix instructions sum in the published order of the hardware.
        storage: The module's variables, which its kernels share; default: new ones.
        served: Kinds of hidden arguments for calls of the host that are served.

    Returns:
        The decoded kernel.

    Raises:
        AsmError: If the kernel has no code, a label is missing, or it asks the host for something.
        UnsupportedInstruction: If something in it is not implemented.
    """
    code = (i for function in module.functions.values() for i in function.instructions)
    interrupts = any(map(_is_host_call, code))
    refuse_host_calls(kernel, module.metadata.get(kernel), interrupts, served)
    storage = storage or Storage(module.data)
    return _Decoder(module, kernel, handlers, storage, exact).run()
