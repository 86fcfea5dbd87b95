"""Workloads: one point of a problem's space, and the splits it belongs to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType


class Split(StrEnum):
    """What a workload is used for."""

    TRAIN = "train"
    """Shown to the policy, checked and timed."""
    UNSEEN = "unseen"
    """Drawn after the candidate has loaded; checked and timed, never shown."""
    ADVERSARIAL = "adversarial"
    """Odd sizes, strides and values; checked, never timed."""


class Kind(StrEnum):
    """Why a workload was drawn. Unseen workloads have one of the middle six kinds."""

    TRAIN = "train"
    EDGE = "edge"
    SCALE_UP = "scale_up"
    SCALE_DOWN = "scale_down"
    ALIGNMENT = "alignment"
    ASPECT = "aspect"
    PRODUCTION = "production"
    ADVERSARIAL = "adversarial"


UNSEEN_KINDS = (
    Kind.EDGE,
    Kind.SCALE_UP,
    Kind.SCALE_DOWN,
    Kind.ALIGNMENT,
    Kind.ASPECT,
    Kind.PRODUCTION,
)


class Layout(StrEnum):
    """How the tensor inputs lie in memory."""

    CONTIGUOUS = "contiguous"
    STRIDED = "strided"
    """Every tensor input is a view whose rows are further apart than they are long."""
    OFFSET = "offset"
    """Every tensor input starts one element after a 16-byte boundary."""


@dataclass(frozen=True)
class Workload:
    """Dimensions, distribution and layout; the data seed is drawn by the judge, apart from it."""

    dims: Mapping[str, int]
    split: Split
    kind: Kind
    distribution: str = "normal"
    layout: Layout = Layout.CONTIGUOUS
    name: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dims", MappingProxyType(dict(self.dims)))

    def __hash__(self) -> int:
        return hash(self.key)

    def __reduce__(self):  # a MappingProxyType does not pickle
        args = (dict(self.dims), self.split, self.kind, self.distribution, self.layout, self.name)
        return (Workload, args)

    @property
    def key(self) -> str:
        """Canonical text of everything that decides the workload but its data seed."""
        return json.dumps(
            [sorted(self.dims.items()), self.split, self.kind, self.distribution, self.layout],
            separators=(",", ":"),
        )

    def __str__(self) -> str:
        dims = " ".join(f"{k}={v}" for k, v in self.dims.items())
        extra = "" if self.layout is Layout.CONTIGUOUS else f" layout={self.layout}"
        return f"{dims} distribution={self.distribution}{extra}"
