"""Measured points as JSON lines, in two halves: what was launched, and how long it took.

A point names a kernel of a public repository, its problem and its configuration:

    {"id": "a", "kernel": "rocm/test_sub.py", "group": "sub|65536", "shape": {"N": 65536},
     "dtype": {"dtype_str": "fp32"}, "config": {"num_warps": 4}, "time_us": 7.8}

or, instead of `shape`, `dtype` and `config`, the `launch` itself
(:mod:`benchmarks.clock.launches`).
`group` holds variants that solve one problem of one size. Optional: `family` (by default from the
name of the kernel's file), `floor_us` (what an empty launch measures in the same way) and
`overhead_us` (the part of it that no work of the kernel hides behind; by default all of it),
`p20_us` and `p80_us` (percentiles of the repetitions). Rows of aiter's tuning tables are points too
(:mod:`benchmarks.clock.tuning_rows`).
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.clock import tuning_rows
from benchmarks.clock.flydsl_names import NoConfigurationError
from kernel_gym.errors import InputError

MEASURED = ("time_us", "us", "p20_us", "p80_us", "bandwidth", "cycles", "suspect")
"""The fields of a point that say what was measured. A prediction is not given them."""
GEAK_FLOOR_US, GEAK_OVERHEAD_US = 6.1, 4.3
"""Microseconds that the timing of the set `geak` adds to a kernel.

The floor is the time of an empty launch: most of the smallest kernels read 6.0 to 6.2 us. The
overhead is 11.7 us less the 7.4 us that 16,384 workgroups of `block_copy` take at 0.45 ns each.
"""
HOST_VARIES = 1.2
"""If the 80th percentile of a time is more than this factor over the 20th, the host was measured.

Where the host takes longer to launch than the GPU to compute, repetitions differ by a third. Of 490
public records 443 lie below 1.1 and 41 above 1.2.
"""


@dataclass(frozen=True)
class Point:
    """A launch that someone measured, without the measurement.

    Attributes:
        identity: The name of the point, unique in its file.
        family: The kernel with all its sizes and variants.
        group: The variants of one problem of one size.
        kernel: The path of the kernel's file, which a checkout has under this name; of a row of a
            tuning table the name of the kernel.
        parameters: The names and values of problem and configuration.
        launch: The launch as JSON-able data; empty if the kernel's own benchmark knows it.
        floor: The time of an empty launch, in microseconds.
        overhead: What a measurement adds to the kernel's own time, in microseconds.
    """

    identity: str
    family: str
    group: str
    kernel: str
    parameters: dict[str, Any] = field(default_factory=dict)
    launch: dict[str, Any] = field(default_factory=dict)
    floor: float = 0.0
    overhead: float = 0.0


@dataclass(frozen=True)
class MeasuredTime:
    """The measurement of a point.

    Attributes:
        microseconds: The median.
        varies: The 80th percentile of the repetitions over the 20th; 1 if it is not known.
        suspect: Whether its source calls the figure doubtful.
    """

    microseconds: float
    varies: float = 1.0
    suspect: bool = False

    @property
    def is_of_the_host(self) -> bool:
        """Whether the time is the host's and not the GPU's."""
        return self.varies > HOST_VARIES


def read_points(path: Path) -> tuple[list[Point], dict[str, str]]:
    """Reads what was launched, and nothing of what was measured.

    Args:
        path: A file of JSON lines.

    Returns:
        The points, and by name of each refused row the reason.

    Raises:
        InputError: If the file cannot be read.
    """
    points, refused = [], {}
    for name, raw in _rows(path):
        if isinstance(raw, str):
            refused[name] = raw
            continue
        try:
            point = parse_point({k: v for k, v in raw.items() if k not in MEASURED})
            points.append(replace(point, identity=name))
        except NoConfigurationError as error:
            refused[name] = str(error)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            refused[name] = f"{type(error).__name__}: {error}"
    return points, refused


def read_measured(path: Path) -> dict[str, MeasuredTime]:
    """Reads what was measured, by the name of the point. Rows without a time are left out."""
    times = {}
    for name, raw in _rows(path):
        try:
            if not isinstance(raw, str):
                times[name] = _measured(raw)
        except (KeyError, TypeError, ValueError, OverflowError):
            continue
    return times


def parse_point(raw: dict[str, Any]) -> Point:
    """Parses the half of a row that says what was launched.

    Raises:
        KeyError: If a field is missing.
        TypeError: If a field has a wrong type.
        ValueError: If a row says neither the launch nor the parameters, or a time is no number.
    """
    if tuning_rows.is_tuning_row(raw):
        return Point(**tuning_rows.point_fields(raw))
    texts = {name: raw[name] for name in ("id", "group", "kernel")}
    for name, text in texts.items():
        if not isinstance(text, str) or not text:
            raise TypeError(f"{name} is a text, not {text!r}")
    launch, geak = raw.get("launch") or {}, raw.get("set") == "geak"
    parts = [raw.get(name) or {} for name in ("shape", "dtype", "config")]
    if not all(isinstance(part, dict) for part in (launch, *parts)):
        raise TypeError("launch, shape, dtype and config are objects")
    parameters = {name: value for part in parts for name, value in part.items()}
    if not launch and not parameters:
        raise ValueError("neither launch nor shape and config say how the kernel was launched")
    floor = _positive(raw.get("floor_us", GEAK_FLOOR_US if geak else 0.0))
    overhead = _positive(raw.get("overhead_us", GEAK_OVERHEAD_US if geak else floor))
    family = str(raw.get("family") or Path(texts["kernel"]).stem.removeprefix("test_"))
    names = (texts["id"], family, texts["group"], texts["kernel"])
    return Point(*names, parameters, launch, floor, overhead)


def _measured(raw: dict[str, Any]) -> MeasuredTime:
    microseconds = _positive(raw["us" if tuning_rows.is_tuning_row(raw) else "time_us"])
    if not microseconds:
        raise ValueError("a time is positive")
    low, high = _positive(raw.get("p20_us", 0)), _positive(raw.get("p80_us", 0))
    varies = high / low if low and high else 1.0
    return MeasuredTime(microseconds, varies, bool(raw.get("suspect")))


def _positive(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number) or number < 0:
        raise ValueError(f"{value!r} is no time")
    return number


def _rows(path: Path) -> list[tuple[str, dict[str, Any] | str]]:
    """Returns the name of each row with the row, or with the reason why it is none."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    rows: dict[str, dict[str, Any] | str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            raw = json.loads(line)
        except (ValueError, RecursionError) as error:
            rows[f"line {number}"] = f"no JSON: {error}"
            continue
        name = _name(raw, rows) if isinstance(raw, dict) else None
        if not isinstance(name, str) or not name:
            rows[f"line {number}"] = "no object with an id"
        elif name in rows:
            rows[name] = "a second row has the same id"
        else:
            rows[name] = raw
    return list(rows.items())


def _name(raw: dict[str, Any], rows: Collection[str]) -> Any:
    """The name of a row. Tuning tables repeat rows, which get a number."""
    if not tuning_rows.is_tuning_row(raw):
        return raw.get("id")
    name = tuning_rows.identity(raw)
    names = itertools.chain([name], (f"{name}#{number}" for number in itertools.count(2)))
    return next(each for each in names if each not in rows)
