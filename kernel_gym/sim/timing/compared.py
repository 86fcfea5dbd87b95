"""Points that the clock was compared with, and what they say of a launch that nobody measured.

`compared.json` has a row for each measured point: its family, how far the modelled time missed, and
what kind of launch it was. `python -m benchmarks clock --residuals FILE` writes it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

from kernel_gym.sim.constants import SAME_TIMES
from kernel_gym.sim.timing.intervals import Interval, interval, ratio_misses

STORED = Path(__file__).parent / "compared.json"
MIN_FAMILIES = 2
"""A kind of launch is compared if so many families have it: one of them says nothing of another."""
_MEMORY = frozenset({"hbm", "mall", "l2", "l1"})
_MATRIX, _SCRATCH, _ATOMICS = "has matrix units", "has scratch memory", "has atomics"
"""Kinds of launches beside those by their bound."""


class Residual(NamedTuple):
    """How far one modelled time missed, and the kind of its longest launch.

    Attributes:
        family: The kernel with all its sizes and variants.
        group: The number of the problem with its size in the file.
        factor: Measured over modelled time, as a verdict states times: with the model's launch, and
            without what the measurement adds.
        microseconds: The modelled time.
        bound: The part of the device that bounds it: `memory`, or as in the profile.
        matrix: Whether it uses matrix units.
        scratch: Whether its waves have scratch memory, for spilled registers or arrays.
        atomics: Whether it adds atomically to few lines.
        code_bytes: Of the code that it executes.
    """

    family: str
    group: int
    factor: float
    microseconds: float
    bound: str
    matrix: bool
    scratch: bool
    atomics: bool
    code_bytes: int


def residual(
    family: str, group: int, factor: float, seconds: float, profile: Mapping[str, Any]
) -> Residual:
    """A row from a modelled time with the profile of its longest launch."""
    bound = str(profile["bound_by"])
    return Residual(
        family,
        group,
        round(factor, 4),
        round(seconds * 1e6, 3),
        "memory" if bound in _MEMORY else bound,
        profile["utilisation"]["matrix"] > 0,
        profile["scratch_bytes"] > 0,
        profile["atomics_us"] > 0,
        profile["code_bytes"],
    )


@dataclass(frozen=True)
class ComparedKernels:
    """Measured points beside modelled ones, of one version of the model.

    Attributes:
        timing_model: The version.
        device: The architecture.
        triton: The version of the compiler.
        rows: The points.
    """

    timing_model: str
    device: str
    triton: str
    rows: tuple[Residual, ...]

    def time(self) -> Interval:
        """The interval of a modelled time."""
        misses: dict[str, list[float]] = {}
        for row in self.rows:
            misses.setdefault(row.family, []).append(math.log(row.factor))
        return interval(misses)

    def ratio(self) -> Interval:
        """The interval of the ratio of two modelled times of kernels for one problem."""
        points = ((row.family, str(row.group), math.log(row.factor)) for row in self.rows)
        return interval(ratio_misses(points))

    def why_not(self, arch: str, seconds: float, profile: Mapping[str, object]) -> str:
        """Why a launch lies outside of what was compared, in words; empty if it lies within.

        Each property is looked at alone: that two of them were never compared together is not seen.
        """
        if arch != self.device:
            return f"no time of {arch} was compared"
        if self.timing_model not in SAME_TIMES[self.device]:
            return f"only version {self.timing_model} of the timing model was compared"
        if profile.get("further_runs"):
            return "its workgroups are unlike: it was run again to record more of them"
        if "bound_by" not in profile:
            return "its launch has no profile"
        own = residual("", 0, 1.0, seconds, profile)
        kinds = (
            (True, _bound(own.bound), own.bound),
            (own.matrix, "uses matrix units", _MATRIX),
            (own.scratch, "has scratch memory", _SCRATCH),
            (own.atomics, "adds atomically to few lines", _ATOMICS),
        )
        for applies, words, kind in kinds:
            if applies and self._families.get(kind, 0) < MIN_FAMILIES:
                return f"it {words}, as kernels of fewer than {MIN_FAMILIES} compared families"
        return self._beyond(own)

    @cached_property
    def _families(self) -> dict[str, int]:
        """The number of families with a kernel of a kind."""
        families: dict[str, set[str]] = {}
        for row in self.rows:
            marks = ((row.matrix, _MATRIX), (row.scratch, _SCRATCH), (row.atomics, _ATOMICS))
            for kind in (row.bound, *(kind for applies, kind in marks if applies)):
                families.setdefault(kind, set()).add(row.family)
        return {kind: len(names) for kind, names in families.items()}

    @cached_property
    def _bounds(self) -> tuple[float, float, float]:
        """The shortest and the longest time, and the largest code, that enough families reach."""
        times = [(row.family, row.microseconds) for row in self.rows]
        short, long = -_reach((f, -time) for f, time in times), _reach(times)
        return short, long, _reach((row.family, row.code_bytes) for row in self.rows)

    def _beyond(self, own: Residual) -> str:
        """Why a launch is shorter, longer or larger than what was compared."""
        short, long, code = self._bounds
        if own.microseconds < short:
            return f"compared kernels took at least {short:.3g} us"
        if own.microseconds > long:
            return f"compared kernels took at most {long:.4g} us"
        if own.code_bytes > code:
            return f"compared kernels executed at most {code:.0f} bytes of code"
        return ""


def _reach(values: Iterable[tuple[str, float]]) -> float:
    """The largest value that so many families reach."""
    most: dict[str, float] = {}
    for family, value in values:
        most[family] = max(value, most.get(family, value))
    return sorted(most.values(), reverse=True)[MIN_FAMILIES - 1]


def _bound(bound: str) -> str:
    return "mostly consists of its launch" if bound == "launch" else f"is bound by {bound}"


@cache
def stored() -> ComparedKernels:
    """The comparison of the repository."""
    return read(STORED)


@cache
def time_factor() -> float | None:
    """The factor either way of a modelled time; None if there is no bound."""
    return _bounded(stored().time())


@cache
def ratio_factor() -> float | None:
    """The factor either way of a ratio of two modelled times; None if there is no bound."""
    return _bounded(stored().ratio())


def _bounded(found: Interval) -> float | None:
    return round(found.factor, 3) if math.isfinite(found.factor) else None


def read(path: Path) -> ComparedKernels:
    """Reads a comparison.

    Raises:
        ValueError: If the file has other columns.
    """
    data = json.loads(path.read_text(encoding="utf-8"))
    if data["columns"] != list(Residual._fields):
        raise ValueError(f"{path} has other columns")
    rows = tuple(Residual(*row) for row in data["rows"])
    return ComparedKernels(data["timing_model"], data["device"], data["triton"], rows)


def merged(
    former: ComparedKernels, latest: ComparedKernels, predicted: Collection[str]
) -> ComparedKernels:
    """The latest rows after the former ones of families that were not predicted again.

    A problem that a kept and a new family share gets two groups, so it makes no pair.

    Args:
        former: An earlier comparison.
        latest: The comparison that replaces or continues it.
        predicted: Families whose former rows go, whether or not a new row took their place.

    Raises:
        ValueError: If the two differ in device or Triton, or their versions in times.
    """
    for name in ("device", "triton"):
        if getattr(former, name) != getattr(latest, name):
            raise ValueError(f"the stored rows have another {name}: {getattr(former, name)}")
    versions = {former.timing_model, latest.timing_model}
    if len(versions) > 1 and not versions <= SAME_TIMES[latest.device]:
        raise ValueError(f"the stored rows have times of version {former.timing_model}")
    kept = [row for row in former.rows if row.family not in predicted]
    groups = {group: new for new, group in enumerate(dict.fromkeys(row.group for row in kept))}
    rows = [row._replace(group=groups[row.group]) for row in kept]
    rows += [row._replace(group=len(groups) + row.group) for row in latest.rows]
    return ComparedKernels(latest.timing_model, latest.device, latest.triton, tuple(rows))


def write(path: Path, comparison: ComparedKernels) -> None:
    """Writes a comparison, a line for each point."""
    head = {"timing_model": comparison.timing_model, "device": comparison.device}
    head |= {"triton": comparison.triton}
    start = json.dumps({**head, "columns": list(Residual._fields)})[:-1]
    rows = ",\n  ".join(json.dumps(list(row)) for row in comparison.rows)
    path.write_text(f'{start}, "rows": [\n  {rows}\n]}}\n', encoding="utf-8")
