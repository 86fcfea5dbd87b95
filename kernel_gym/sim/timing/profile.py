"""The profile of a modelled launch: its bound, its stalls, its hottest instructions.

A profile is JSON-able data. :func:`profile_text` renders it for people and policies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kernel_gym.sim import constants as hw
from kernel_gym.sim import layouts
from kernel_gym.sim.compiler.timing_tables import UNITS
from kernel_gym.sim.layouts import Stall
from kernel_gym.sim.timing.occupancy import Occupancy
from kernel_gym.sim.timing.traffic import Traffic

HOT_INSTRUCTIONS = 8
HOT_LINES = 8
MIN_SHARE = 1e-4
"""Instructions with a smaller share of the waves' time count for no source line."""
BUSY_UNIT = 0.65
"""A unit that is busy for at least this share bounds the launch. Otherwise latency does."""
MAX_TEXT = 2000
STALLS = {
    Stall.ISSUE: "issue",
    Stall.VECTOR_BUSY: "vector unit busy",
    Stall.MATRIX_BUSY: "matrix unit busy",
    Stall.MATRIX_RESULT: "matrix result",
    Stall.LDS_QUEUE: "LDS queue",
    Stall.MEMORY_QUEUE: "memory queue",
    Stall.MEMORY: "memory wait",
    Stall.LDS: "LDS wait",
    Stall.SCALAR_MEMORY: "scalar memory wait",
    Stall.BARRIER: "barrier",
}
"""Names of what waves spend their cycles on."""
_PIPES = {"vector": hw.SIMDS, "matrix": hw.SIMDS, "lds": 1, "memory": 1}
_BOUNDS = {"vector": "compute", "matrix": "compute", "lds": "lds", "memory": "l1"}


def describe_profile(
    terms: Mapping[str, float],
    seconds: float,
    request: layouts.ModelRequest,
    traffic: Traffic,
    residency: Occupancy,
    launch: layouts.LaunchRequest,
    spent: npt.NDArray[np.float64],
) -> dict[str, object]:
    """The profile of a launch.

    Args:
        terms: Seconds that each part of the device needs.
        seconds: Modelled time of the launch.
        request: The model's request, with results.
        traffic: Bytes by level.
        residency: Workgroups on a compute unit.
        launch: The launch, with results.
        spent: Wave cycles by instruction.

    Returns:
        JSON-able data; ``hot`` and ``lines`` name instructions by number.
    """
    pipes = utilisation(request)
    return {
        "bound_by": bound_of(terms, pipes),
        "occupancy": {
            "waves_per_simd": residency.waves_per_simd,
            "workgroups_per_cu": residency.workgroups_per_cu,
            "limiter": residency.limiter,
        },
        "us": seconds * 1e6,
        **{f"{name}_us": value * 1e6 for name, value in terms.items()},
        "launch_us": hw.LAUNCH_S * 1e6,
        "bytes": {
            "read": launch.read_lines * hw.LINE_BYTES,
            "written": launch.written_lines * hw.LINE_BYTES,
            "hbm": round(traffic.hbm),
            "mall": round(traffic.mall),
            "l2": round(traffic.l2),
        },
        "utilisation": pipes,
        "of_peak": of_peak(terms, seconds),
        "stalls": stall_shares(request),
        "sampling": {
            "workgroups": launch.sampled,
            "explained": round(request.explained, 4),
        },
        "hot": hot_instructions(spent),
        "lines": spent_instructions(spent),
    }


def bound_of(terms: Mapping[str, float], pipes: Mapping[str, float]) -> str:
    """The part of the device that bounds the launch.

    Returns:
        ``hbm``, ``mall``, ``l2``, ``l1``, ``lds``, ``compute``, ``atomics``, ``latency`` or
        ``launch``.
    """
    bound = max(terms, key=lambda name: terms[name])
    if terms[bound] < hw.LAUNCH_S:
        return "launch"
    if bound != "cu":
        return "compute" if bound == "matrix" else bound
    busiest = max(pipes, key=lambda name: pipes[name])
    return _BOUNDS[busiest] if pipes[busiest] >= BUSY_UNIT else "latency"


def utilisation(request: layouts.ModelRequest) -> dict[str, float]:
    """Share of the time that each unit of a compute unit is busy, in the replays."""
    cycles = request.replay_cycles
    return {
        name: round(min(1.0, request.busy[UNITS.index(name)] / (cycles * count)), 4)
        if cycles
        else 0.0
        for name, count in _PIPES.items()
    }


def of_peak(terms: Mapping[str, float], seconds: float) -> dict[str, float]:
    """Achieved rate over peak rate by part of the device, with the launch in the time."""
    efficiency = {
        "matrix": hw.MATRIX_SUSTAINED,
        "hbm": hw.HBM_EFFICIENCY,
        "l2": hw.L2_EFFICIENCY,
        "mall": hw.MALL_EFFICIENCY,
    }
    return {
        name: round(min(1.0, terms[name] * share / seconds), 4)
        for name, share in efficiency.items()
    }


def stall_shares(request: layouts.ModelRequest) -> dict[str, float]:
    """Shares of the waves' time by stall, largest first."""
    total = sum(request.stalls)
    shares = {name: request.stalls[i] / total for i, name in STALLS.items() if total}
    ordered = sorted(shares.items(), key=lambda item: -item[1])
    return {name: round(share, 4) for name, share in ordered if share >= 0.001}


def hot_instructions(spent: npt.NDArray[np.float64]) -> list[dict[str, object]]:
    """The instructions on which waves spend most time, with their shares."""
    total = float(spent.sum())
    if total <= 0:
        return []
    order = np.argsort(-spent, kind="stable")[:HOT_INSTRUCTIONS]
    return [
        {"instruction": int(i), "share": round(float(spent[i]) / total, 4)}
        for i in order
        if spent[i] > 0
    ]


def spent_instructions(spent: npt.NDArray[np.float64]) -> list[tuple[int, float]]:
    """All instructions with a share of the waves' time that counts, and the share."""
    total = float(spent.sum())
    counting = np.flatnonzero(spent >= total * MIN_SHARE) if total > 0 else ()
    return [(int(i), float(spent[i]) / total) for i in counting]


def hot_lines(shares: Iterable[tuple[str, str, float]]) -> list[dict[str, object]]:
    """The source lines on which waves spend most time.

    Args:
        shares: The source line, the text and the share of each instruction.

    Returns:
        For each line its share, and the text of its dearest instruction.
    """
    totals: dict[str, float] = {}
    dearest: dict[str, tuple[float, str]] = {}
    for source, text, share in shares:
        if source:
            totals[source] = totals.get(source, 0.0) + share
            dearest[source] = max(dearest.get(source, (0.0, "")), (share, text))
    ordered = sorted(totals.items(), key=lambda item: -item[1])[:HOT_LINES]
    return [
        {"source": source, "share": round(share, 4), "text": dearest[source][1]}
        for source, share in ordered
    ]


def profile_text(name: str, profile: Mapping[str, Any]) -> str:
    """Renders a profile for people and policies.

    Args:
        name: The kernel's name.
        profile: From a launch.

    Returns:
        At most ``MAX_TEXT`` characters.
    """
    occupancy, moved = profile["occupancy"], profile["bytes"]
    lines = [
        f"{name}: {profile['us']:.2f} us (modelled), bound by {profile['bound_by']}",
        "  needs: "
        + ", ".join(
            f"{label} {profile[f'{key}_us']:.2f} us"
            for key, label in (
                ("launch", "launch"),
                ("cu", "compute units"),
                ("matrix", "matrix at sustained rate"),
                ("hbm", "HBM"),
                ("mall", "Infinity Cache"),
                ("l2", "L2"),
                ("atomics", "atomics on the same lines"),
            )
            if profile[f"{key}_us"] >= 0.005
        ),
        f"  occupancy: {occupancy['waves_per_simd']} waves a SIMD, "
        f"{occupancy['workgroups_per_cu']} workgroups a compute unit, "
        f"limited by {occupancy['limiter']}",
        f"  bytes: {_size(moved['read'])} read, {_size(moved['written'])} written; "
        f"{_size(moved['l2'])} through L2, {_size(moved['hbm'])} from HBM",
        "  of peak: " + _shares(profile["of_peak"]),
        "  busy in a compute unit: " + _shares(profile["utilisation"]),
        "  waves spend: " + _shares(dict(list(profile["stalls"].items())[:5])),
        "  hottest lines: "
        + _shares({h["source"].rpartition("/")[2]: h["share"] for h in profile["lines"][:4]}),
        *_conflict_lines(profile.get("bank_conflicts", ())),
        "  hottest instructions:",
    ]
    for entry in profile["hot"]:
        source = entry.get("source", "").rpartition("/")[2]
        text = _shortened(entry.get("text", ""), 60)
        lines.append(f"    {entry['share']:6.1%}  {text}  {_with_line(source, 40)}")
    return "\n".join(lines)[:MAX_TEXT]


def _shortened(text: str, most: int) -> str:
    """At most so many characters of an instruction; dots stand for its other operands."""
    return text if len(text) <= most else f"{text[: most - 4]} ..."


def _with_line(source: str, most: int) -> str:
    """A file and its line, `FILE:LINE`. The name is cut at the front, and the line never."""
    name, colon, line = source.rpartition(":")
    room = most - len(colon + line) - 3
    return source if len(source) <= most else f"...{name[-room:]}{colon}{line}"


def _conflict_lines(conflicts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names the source lines whose accesses of LDS have bank conflicts, with their cycles."""
    if not conflicts:
        return []
    named = ", ".join(
        f"{entry['source'].rpartition('/')[2]} {entry['cycles']:g} cycles an access "
        f"({entry['least']:g} without)"
        for entry in conflicts
    )
    return [f"  bank conflicts: {named}"]


def _shares(shares: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {share:.0%}" for name, share in shares.items()) or "nothing"


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.2f} GiB"
