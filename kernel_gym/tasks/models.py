"""Dimensions of public models from `models.toml`. Workload shapes come from them.

Example:
    >>> model("llama-3-8b").hidden, model("mixtral-8x7b").experts
    (4096, 8)
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kernel_gym.tasks.near_names import unknown

FAMILIES = (
    "decoder-llm",
    "moe",
    "diffusion",
    "vision",
    "audio",
    "state-space",
    "recommender",
    "protein",
)
"""Architecture families. Problems have them as tags."""


@dataclass(frozen=True)
class ModelShape:
    """One model. Its dimensions are attributes: integers, or lists of integers by stage."""

    name: str
    family: str
    dimensions: Mapping[str, Any]

    def __getattr__(self, key: str) -> object:
        dimensions = self.__dict__.get("dimensions", {})
        if key in dimensions:
            return dimensions[key]
        raise AttributeError(f"model {self.__dict__.get('name')!r}: no {key!r}; {[*dimensions]}")


def model(name: str) -> ModelShape:
    """Returns a model by name.

    Raises:
        KeyError: There is no such model. The message lists similar names.
    """
    known = models()
    if name not in known:
        raise KeyError(unknown("model", name, sorted(known)))
    return known[name]


@cache
def models() -> Mapping[str, ModelShape]:
    """Returns all models by name."""
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    return {
        name: ModelShape(name, entry.pop("family"), entry)
        for name, entry in tomllib.loads(text).items()
    }
