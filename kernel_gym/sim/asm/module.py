"""Reads a module for the simulator: an assembler text or a code object.

LLVM assembles a text. From there on only the bytes count: instructions, descriptors, metadata and
data come from the code object. The text names the lines of the candidate's source.
"""

from __future__ import annotations

from collections.abc import Mapping

from kernel_gym.sim.asm.assembler import Assembler
from kernel_gym.sim.asm.code import Encoded, read_code
from kernel_gym.sim.asm.data import DataReader
from kernel_gym.sim.asm.debug_lines import read_debug_lines
from kernel_gym.sim.asm.descriptors import BYTES, VECTOR_GRANULE, read_descriptor
from kernel_gym.sim.asm.elf import CodeObject
from kernel_gym.sim.asm.errors import AsmError
from kernel_gym.sim.asm.lines import TextLine, read_lines
from kernel_gym.sim.asm.metadata import KernelMetadata, read_note
from kernel_gym.sim.asm.references import References, check_targets
from kernel_gym.sim.asm.targets import BY_MACHINE, Target
from kernel_gym.sim.asm.text import Module

ELF = b"\x7fELF"
_METADATA_NOTE = 32
_PRELOAD_HEADER_BYTES = 256
_WAVE_LANES = 64
_EQUAL_FACTS = {
    "group_segment_fixed_size": "group_segment_fixed_size",
    "private_segment_fixed_size": "private_segment_fixed_size",
    "kernarg_segment_size": "kernarg_size",
}
"""Facts that metadata and descriptor both state, by the names in each."""


def read_module(content: bytes, assembler: Assembler) -> Module:
    """Reads a module.

    Args:
        content: An assembler text, such as the output of ``clang -S``, or a linked code object.
        assembler: Assembles texts.

    Raises:
        AsmError: LLVM does not assemble the text, the target lacks an instruction, something is
            damaged, metadata and descriptor differ, or there is no kernel.
    """
    if content.startswith(ELF):
        return _read(CodeObject(content), None, {}, assembler, content)
    text = content.decode(errors="replace")
    if ".amdhsa_kernel" not in text:
        raise AsmError("no kernel found: the module has no .amdhsa_kernel and is no code object")
    code = CodeObject(assembler.code_object(text))
    lines, files = read_lines(text)
    return _read(code, lines, files, assembler)


def _read(
    code: CodeObject,
    lines: dict[str, list[TextLine]] | None,
    files: dict[int, str],
    assembler: Assembler,
    linked: bytes = b"",
) -> Module:
    target = _target_of(code)
    stated, metadata = _metadata_of(code)
    if stated.rpartition("-")[2].partition(":")[0] not in ("", target.arch):
        raise AsmError(f"the code is for {target.arch}, and its metadata for {stated}")
    bodies = read_code(code, target.arch, lines, assembler)
    descriptors = _descriptors_of(code)
    for name, descriptor in descriptors.items():
        bodies[name] = _without_preload_header(bodies[name], descriptor)
        _check_facts(name, descriptor, metadata.get(name))
    if linked:
        files = _locate(bodies, linked)
    data = DataReader(code)
    references = References(bodies, code.functions, data)
    functions = {name: references.function(name, body) for name, body in bodies.items()}
    check_targets(functions.values())
    return Module(functions, descriptors, metadata, files, data.objects(), target.arch)


def _locate(bodies: Mapping[str, list[Encoded]], content: bytes) -> dict[int, str]:
    """Gives each instruction its source line; returns the names of source files by number."""
    code = [item for body in bodies.values() for item in body]
    places, files = read_debug_lines(content, [item.address for item in code])
    for item in code:
        item.source = TextLine(None, "", places.get(item.address))
    return files


def _descriptors_of(code: CodeObject) -> dict[str, dict[str, int]]:
    descriptors = {}
    for address, symbol in sorted(code.symbols.items()):
        if symbol.name.endswith(".kd"):
            name = symbol.name.removesuffix(".kd")
            descriptors[name], entry = read_descriptor(code.bytes_at(address, BYTES))
            if code.functions.get(address + entry) != name:
                raise AsmError(f"the descriptor of {name} does not start the function {name}")
    if not descriptors:
        raise AsmError("no kernel found: the code object has no kernel descriptor")
    return descriptors


def _target_of(code: CodeObject) -> Target:
    if code.machine not in BY_MACHINE:
        names = ", ".join(target.arch for target in BY_MACHINE.values())
        raise AsmError(f"the code object is for machine {code.machine:#x}, expected {names}")
    return BY_MACHINE[code.machine]


def _metadata_of(code: CodeObject) -> tuple[str, dict[str, KernelMetadata]]:
    notes = code.notes(b"AMDGPU")
    return read_note(notes[_METADATA_NOTE]) if _METADATA_NOTE in notes else ("", {})


def _without_preload_header(body: list[Encoded], descriptor: dict[str, int]) -> list[Encoded]:
    """Drops a header that only traps. The code itself follows 256 bytes later.

    Kernels with preloaded arguments begin with a header for firmware that cannot preload.
    """
    preloads = descriptor["user_sgpr_kernarg_preload_length"]
    if not preloads or not body or not body[0].text.startswith("s_trap"):
        return body
    start = body[0].address + _PRELOAD_HEADER_BYTES
    return [code for code in body if code.address >= start]


def _check_facts(name: str, descriptor: dict[str, int], metadata: KernelMetadata | None) -> None:
    """Checks that a kernel's metadata state what its descriptor does.

    The number of registers in the metadata is exact: the hardware allocates eight at a time. It
    replaces that of the descriptor, unless the descriptor allocates more. The compiler does that
    for kernels with a limit on the waves of a SIMD (`waves_per_eu`). A descriptor with no bytes of
    arguments does not state them (LLVM, "User Guide for AMDGPU Backend", KERNARG_SIZE).

    Raises:
        AsmError: They do not.
    """
    values = metadata.values if metadata else {}
    if descriptor["kernarg_size"] == 0:
        descriptor["kernarg_size"] = values.get("kernarg_segment_size", 0)
    for fact, directive in _EQUAL_FACTS.items():
        if values.get(fact, descriptor[directive]) != descriptor[directive]:
            raise AsmError(
                f"the metadata of {name} state {fact} {values[fact]}, "
                f"its descriptor {descriptor[directive]}"
            )
    if values.get("wavefront_size", _WAVE_LANES) != _WAVE_LANES:
        raise AsmError(f"{name} is for waves of {values['wavefront_size']} lanes, expected 64")
    allocated = descriptor["next_free_vgpr"]
    declared = values.get("vgpr_count", allocated)
    needed = max(1, -(-declared // VECTOR_GRANULE)) * VECTOR_GRANULE
    if needed > allocated:
        raise AsmError(
            f"the metadata of {name} state {declared} vector registers, its descriptor {allocated}"
        )
    if needed == allocated:
        descriptor["next_free_vgpr"] = max(1, declared)  # v0 holds the number of the work-item
