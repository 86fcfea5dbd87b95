"""Takes the folders out of a profile. Judges do that, which load no compiler of the simulator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def without_folders(profile: Mapping[str, Any]) -> dict[str, object]:
    """A copy of a profile without the folders of source files, which differ between runs."""
    short = {
        key: [h | {"source": h.get("source", "").rpartition("/")[2]} for h in profile.get(key, ())]
        for key in ("hot", "lines", "bank_conflicts")
        if key in profile
    }
    return {**profile, **short}
