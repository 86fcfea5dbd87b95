"""Optimisation guides by architecture and language: short texts that prompts show."""

from __future__ import annotations

from pathlib import Path

_GUIDES = Path(__file__).parent / "guides"
_FAMILIES = {
    "gfx90a": "cdna",
    "gfx942": "cdna",
    "gfx950": "cdna",
    "sm_90": "hopper",
    "sm_90a": "hopper",
}
"""The folder with the guides of an architecture and its family."""


def guide(arch: str, language: str) -> str:
    """Returns what to know about a device when writing kernels for it.

    Args:
        arch: The name of the architecture, such as gfx942 or sm_90a.
        language: "triton", "hip", or "gluon" for what Gluon needs in addition to Triton.

    Returns:
        A Markdown list; empty if there is no guide for the architecture.
    """
    if arch not in _FAMILIES:
        return ""
    folder = _GUIDES / _FAMILIES[arch]
    names = ("gluon",) if language == "gluon" else ("common", arch, language)
    parts = [folder / f"{name}.md" for name in names]
    return "\n".join(part.read_text(encoding="utf-8").strip() for part in parts if part.is_file())
