"""Optimisation guides by architecture and language: short texts of ours, shown in prompts."""

from __future__ import annotations

from pathlib import Path

_GUIDES = Path(__file__).parent / "guides"
_RELATIVES = {"gfx90a": "gfx942", "gfx950": "gfx942"}
"""Architectures that share the guide of another."""


def guide(arch: str, language: str) -> str:
    """What to know about a device when writing for it.

    Args:
        arch: the architecture's name, such as gfx942 or sm_90.
        language: "triton" or "hip".

    Returns:
        A Markdown list; empty where nothing is written on the architecture.
    """
    folder = _GUIDES / _RELATIVES.get(arch, arch)
    if not arch or not folder.is_dir():
        return ""
    parts = (folder / "common.md", folder / f"{language}.md")
    return "\n".join(part.read_text(encoding="utf-8").strip() for part in parts)
