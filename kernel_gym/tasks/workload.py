"""Workloads: points of a problem's space and scalar arguments, each in one split."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType


class Split(StrEnum):
    """The use of a workload."""

    TRAIN = "train"
    """Shown to the policy, checked and timed."""
    UNSEEN = "unseen"
    """Drawn after the candidate has loaded. Checked and timed, never shown."""
    ADVERSARIAL = "adversarial"
    """Odd sizes, strides and values. Checked, never timed or shown."""


class Kind(StrEnum):
    """Why a workload was drawn. Unseen workloads have one of the kinds in `UNSEEN_KINDS`."""

    TRAIN = "train"
    EDGE = "edge"
    """An axis at its low end, such as one row. Checked, not timed."""
    REACH = "reach"
    """An axis near the largest legal size that is affordable. Checked, not timed."""
    SCALE_UP = "scale_up"
    SCALE_DOWN = "scale_down"
    ALIGNMENT = "alignment"
    ASPECT = "aspect"
    PRODUCTION = "production"
    ADVERSARIAL = "adversarial"


UNSEEN_KINDS = (
    Kind.EDGE,
    Kind.REACH,
    Kind.SCALE_UP,
    Kind.SCALE_DOWN,
    Kind.ALIGNMENT,
    Kind.ASPECT,
    Kind.PRODUCTION,
)


class Layout(StrEnum):
    """The memory layout of the tensor inputs."""

    CONTIGUOUS = "contiguous"
    STRIDED = "strided"
    """Every tensor input is a view with a row stride that is larger than its row length."""
    OFFSET = "offset"
    """Every tensor input starts one element after a 16-byte boundary."""


class Magnitude(StrEnum):
    """The values of one tensor in a contrast (`kernel_gym/tasks/contrasts.py`)."""

    SMALL = "small"
    """All of them are near zero."""
    FAR = "far"
    """Half of them are drawn from the whole stated range."""
    POSITIVE = "positive"
    """They are as drawn, without their signs."""
    SMALL_POSITIVE = "small-positive"
    FAR_POSITIVE = "far-positive"


@dataclass(frozen=True)
class Workload:
    """Dimensions, distribution, layout and scalars. The seed of the data is not part of it."""

    dims: Mapping[str, int]
    split: Split
    kind: Kind
    distribution: str = "normal"
    layout: Layout = Layout.CONTIGUOUS
    name: str = field(default="", compare=False)
    scalars: Mapping[str, int | float] = field(default_factory=dict)
    """The value of each scalar argument with declared values. An absent one has its first value."""
    timed: bool = field(default=True, compare=False)
    """Whether it is timed. Adversarial workloads and tiny unseen ones are checked only."""
    magnitudes: Mapping[str, Magnitude] = field(default_factory=dict)
    """The tensors whose values are not as the distribution says, and what they are."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "dims", MappingProxyType(dict(self.dims)))
        object.__setattr__(self, "scalars", MappingProxyType(dict(self.scalars)))
        object.__setattr__(self, "magnitudes", MappingProxyType(dict(self.magnitudes)))

    def __hash__(self) -> int:
        return hash(self.key)

    def __reduce__(self):  # a MappingProxyType does not pickle
        args = (dict(self.dims), self.split, self.kind, self.distribution, self.layout, self.name)
        return (Workload, (*args, dict(self.scalars), self.timed, dict(self.magnitudes)))

    @property
    def key(self) -> str:
        """The canonical text of the workload: equal for equal workloads only."""
        scalars = [sorted(self.scalars.items())] if self.scalars or self.magnitudes else []
        magnitudes = [sorted(self.magnitudes.items())] if self.magnitudes else []
        parts = [sorted(self.dims.items()), self.split, self.kind, self.distribution, self.layout]
        return json.dumps([*parts, *scalars, *magnitudes], separators=(",", ":"))

    def __str__(self) -> str:
        dims = " ".join(f"{k}={v}" for k, v in {**self.dims, **self.scalars}.items())
        extra = "" if self.layout is Layout.CONTIGUOUS else f" layout={self.layout}"
        extra += "".join(f" {name}={size}" for name, size in self.magnitudes.items())
        return f"{dims} distribution={self.distribution}{extra}"
