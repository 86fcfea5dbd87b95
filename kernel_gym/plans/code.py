"""Checks the frame of code objects before a driver sees them: drivers trust the sizes in a file."""

from __future__ import annotations

import struct

from kernel_gym.inert import inert_line
from kernel_gym.plans.binary import features_of
from kernel_gym.plans.reading import BadPlanError
from kernel_gym.plans.types import CodeForm, PlanCode

_HEADER = struct.Struct("<4sBBBB8xHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_MACHINES = {CodeForm.HSACO: 224, CodeForm.CUBIN: 190}  # EM_AMDGPU, EM_CUDA
_CLASS_64, _LITTLE = 2, 1
_NO_CONTENT = 8  # SHT_NOBITS
MAX_PARTS = 1 << 12
"""Most sections, and most segments, of a code object."""


def check_code(code: PlanCode, what: str) -> None:
    """Checks that all parts of a code object lie within it.

    Args:
        code: The code object.
        what: Names it in errors.

    Raises:
        BadPlanError: Assembler text is no text, or a file is no ELF file for a GPU, or damaged, or
            it can do what a plan does not show.
    """
    if code.form is CodeForm.ASSEMBLER:
        try:
            code.content.decode()
        except UnicodeDecodeError:
            raise BadPlanError(f"{what} is no text in UTF-8") from None
        return
    try:
        _check_file(code, what)
        features = features_of(code)
    except struct.error:
        raise BadPlanError(f"{what} ends within a table") from None
    if features.missing:
        names = ", ".join(inert_line(name, 80) for name in features.missing[:4])
        raise BadPlanError(
            f"{what} calls {names}, which is not in it: kernels may not start others or allocate "
            "memory"
        )
    if features.queue:
        raise BadPlanError(f"{what} asks for its queue: kernels may not start others")


def _check_file(code: PlanCode, what: str) -> None:
    content = code.content
    head = _HEADER.unpack_from(content)
    magic, bits, order = head[:3]
    machine, segments, sections = head[6], head[9], head[10]
    if magic != b"\x7fELF" or (bits, order) != (_CLASS_64, _LITTLE):
        raise BadPlanError(f"{what} is no ELF file of 64 bits")
    if machine != _MACHINES[code.form]:
        raise BadPlanError(f"{what} is for machine {machine}, expected {_MACHINES[code.form]}")
    segment_size, segment_count, section_size, section_count, names = head[13:]
    if (segment_count and segment_size != _SEGMENT.size) or section_size != _SECTION.size:
        raise BadPlanError(f"{what} has tables of another form")
    if max(segment_count, section_count) > MAX_PARTS or names >= section_count:
        raise BadPlanError(f"{what} has {section_count} sections, {segment_count} segments")
    for number in range(segment_count):
        _, _, offset, _, _, size, *_ = _SEGMENT.unpack_from(content, segments + 56 * number)
        _check_within(offset, size, content, f"segment {number} of {what}")
    for number in range(section_count):
        _, kind, _, _, offset, size, *_ = _SECTION.unpack_from(content, sections + 64 * number)
        if kind != _NO_CONTENT:
            _check_within(offset, size, content, f"section {number} of {what}")


def _check_within(offset: int, size: int, content: bytes, what: str) -> None:
    if offset + size > len(content):
        raise BadPlanError(f"{what} does not lie within the file")
