"""Measured times of kernels on real GPUs, as JSON lines.

A record names a kernel, how it was launched, and how long it took:

    {"id": "a", "family": "softmax", "group": "softmax 2048x2048", "device": "MI300X",
     "kernel": "softmax.py", "time_us": 12.2, "floor_us": 6.1,
     "launch": {"function": "softmax_kernel", "grid": [2048], "constants": {"BLOCK": 2048},
                "arguments": [{"shape": [2048, 2048], "dtype": "float16"}, 2048],
                "options": {"num_warps": 4}}}

``group`` holds variants that solve one problem of one size, so that their times can be ranked.
``floor_us`` is what an empty launch measures in the same way. ``overhead_us`` is the part of it
that no work of the kernel hides behind; by default all of it. ``p20_us`` and ``p80_us``, if given,
are percentiles of the repetitions: times that vary much belong to the host (skill.py). Records of
the public collection (AMD-AGI/GEAK-eval) have no ``launch``; geak.py knows their launches.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.simulator import geak
from benchmarks.simulator.launches import TritonLaunch


class BadRecord(ValueError):
    """A line that is no record."""


@dataclass(frozen=True)
class Measured:
    """A measured time of one kernel.

    Attributes:
        identity: Unique name.
        family: The kernel, with all its sizes and variants.
        group: The variants of one problem of one size.
        kernel: File of the kernel in the folder of kernels.
        launches: How it was launched. With several, the device's tuner took the fastest one.
        microseconds: The measured time.
        floor: What an empty launch measures, in microseconds.
        overhead: What a measurement adds to the kernel's own time, in microseconds.
        varies: The 80th percentile of the repetitions over the 20th; 1 if it is not known.
        raw: The whole record.
    """

    identity: str
    family: str
    group: str
    kernel: str
    launches: tuple[TritonLaunch, ...]
    microseconds: float
    floor: float
    overhead: float
    varies: float
    raw: dict[str, Any]

    def timed(
        self, times: tuple[float, float, float], floor: float, device: str, launch: TritonLaunch
    ) -> dict[str, Any]:
        """The record with another measurement of one launch, as JSON-able data.

        Args:
            times: Median, 20th and 80th percentile, in microseconds.
            floor: Of an empty launch, in microseconds.
            device: Name of the device.
            launch: The launch.
        """
        names = ("time_us", "p20_us", "p80_us", "floor_us")
        return {
            "id": self.identity,
            "device": device,
            **{"family": self.family, "group": self.group, "kernel": self.kernel},
            **{n: round(t, 3) for n, t in zip(names, (*times, floor), strict=True)},
            "launch": launch.to_json(),
        }


def read_records(path: Path) -> list[Measured]:
    """The records of a file that the simulator can run; other sets are left out.

    Raises:
        BadRecord: If a line is not a JSON object or its launch is malformed.
    """
    records = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            raw = json.loads(line)
            record = parse_record(raw)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadRecord(f"{path}, line {number}: {type(error).__name__}: {error}") from error
        if record is not None:
            records.append(record)
    return _distinct(records)


def write_records(path: Path, records: Iterable[dict[str, Any]]) -> None:
    """Writes records as JSON lines."""
    path.write_text("".join(json.dumps(each) + "\n" for each in records), encoding="utf-8")


def parse_record(raw: dict[str, Any]) -> Measured | None:
    """A record from its JSON object; None if it does not say how the kernel was launched."""
    if "launch" in raw:
        kernel = str(raw["kernel"])
        return Measured(
            str(raw["id"]),
            str(raw.get("family", Path(kernel).stem)),
            str(raw["group"]),
            kernel,
            (TritonLaunch.from_json(raw["launch"]),),
            float(raw["time_us"]),
            float(raw.get("floor_us", 0.0)),
            float(raw.get("overhead_us", raw.get("floor_us", 0.0))),
            _varies(raw),
            raw,
        )
    known = geak.interpret(raw) if raw.get("set") == "geak" else None
    if known is None:
        return None
    return Measured(
        str(raw["id"]),
        known.family,
        known.group,
        Path(raw["kernel"]).name,
        known.launches,
        float(raw["time_us"]),
        geak.FLOOR_US,
        geak.OVERHEAD_US,
        _varies(raw),
        raw,
    )


def _varies(raw: dict[str, Any]) -> float:
    if "p20_us" not in raw or "p80_us" not in raw:
        return 1.0
    return float(raw["p80_us"]) / float(raw["p20_us"])


def _distinct(records: list[Measured]) -> list[Measured]:
    """Records with unique names; a repeated name gets a number."""
    seen: dict[str, int] = {}
    distinct = []
    for record in records:
        count = seen[record.identity] = seen.get(record.identity, 0) + 1
        name = record.identity if count == 1 else f"{record.identity} ({count})"
        distinct.append(replace(record, identity=name))
    return distinct
