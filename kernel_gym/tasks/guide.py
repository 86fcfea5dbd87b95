"""Optimisation guides by architecture and language: short texts of ours, shown in prompts."""

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
"""The folder of an architecture: what its family has in common, and what it has of its own."""


def guide(arch: str, language: str) -> str:
    """What to know about a device when writing for it.

    Args:
        arch: the architecture's name, such as gfx942 or sm_90a.
        language: "triton" or "hip".

    Returns:
        A Markdown list; empty where nothing is written on the architecture.
    """
    if arch not in _FAMILIES:
        return ""
    folder = _GUIDES / _FAMILIES[arch]
    parts = [folder / f"{part}.md" for part in ("common", arch, language)]
    return "\n".join(part.read_text(encoding="utf-8").strip() for part in parts if part.is_file())
