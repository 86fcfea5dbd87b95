"""Instruction sets of the engine, and those that this processor has.

It imports nothing of the package, because `setup.py` loads it before the package is installed.
"""

from __future__ import annotations

from pathlib import Path

ISAS = ("avx512", "avx2", "portable")
"""All variants of the engine, best first."""
_NEEDED_FLAGS = {
    "avx512": {"avx512f", "avx512bw", "avx512dq", "avx512vl", "fma", "f16c", "bmi2", "abm"},
    "avx2": {"avx2", "fma", "f16c", "bmi1", "bmi2", "abm"},
    "portable": set(),
}


def isas_of_processor(processor_info: Path = Path("/proc/cpuinfo")) -> tuple[str, ...]:
    """Returns the variants that this processor can run, best first.

    Args:
        processor_info: The file in which the kernel lists the processor's flags.
    """
    flags = _processor_flags(processor_info)
    return tuple(isa for isa in ISAS if _NEEDED_FLAGS[isa] <= flags)


def _processor_flags(processor_info: Path) -> set[str]:
    try:
        text = processor_info.read_text()
    except OSError:
        return set()
    for line in text.splitlines():
        if line.startswith("flags"):
            return set(line.partition(":")[2].split())
    return set()
