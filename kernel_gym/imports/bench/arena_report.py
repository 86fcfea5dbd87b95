"""Reports of AgentKernelArena's performance commands, read by the rules of its evaluator.

The candidate runs in the process that writes a report, so a report is hostile text: it is parsed
into bounded values here, and nothing of it is believed beyond the suite's own score. The rules are
those of `src/testcases.py`, `src/performance.py` and `src/score.py` of the suite.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

from kernel_gym.inert import inert_line

REPORTS = (
    "build/performance_report.json",
    "performance_report.json",
    "build/perf_report.json",
    "perf_report.json",
    "perf/benchmark_results.json",
)
"""Where a performance command may leave its report. The first that has cases counts."""
RESULT = "ARENA_EVAL_RESULT="
"""Begins the only line of a result of the second contract."""
MAX_REPORT_CHARACTERS = 1 << 18
"""Most characters of a report or of what was printed."""
MAX_CASES = 256
MAX_NAME_CHARACTERS = 120
MAX_DEPTH = 6
"""Most levels of nested values that tell two cases apart."""
MAX_CASE_MILLISECONDS = 1e9
"""Most milliseconds of a case. A longer one is invalid."""
_DEVICE = (
    "device_time_ms gpu_time_ms kernel_time_ms cuda_event_time_ms cuda_graph_time_ms "
    "execution_time_ms"
).split()
_AMBIGUOUS = ("execution_time", "time_ms", "time")
_HOST = "host_time_ms wall_time_ms elapsed_time_ms total_time_ms end_to_end_time_ms".split()
_SECONDS = 1000.0
"""An `execution_time` or `time` of so much or more is taken for seconds."""
_NUMBER = r"([0-9.]{1,40})"
_CASE_LINE = re.compile(rf"(?:Test\s+case|TestCase)\s+(\d{{1,9}})[:\s]+{_NUMBER}\s*ms", re.I)
_SHAPE_LINE = re.compile(rf"Shape[:\s]+\[([0-9,\s]{{1,200}})\][:\s]+{_NUMBER}\s*ms", re.I)
_PERFORMANCE_LINE = re.compile(rf"Performance:\s*{_NUMBER}\s*ms", re.I)
_WORDS = ("Performance:\\s*", *(rf"{w}[_\s]time[:\s]+" for w in ("execution", "elapsed", "avg")))
_SINGLE = (
    (re.compile(rf"GEAK_RESULT_LATENCY_MS={_NUMBER}", re.I), 1.0),
    *(
        (re.compile(rf"{words}{_NUMBER}\s*{unit}", re.I), factor)
        for words in _WORDS
        for unit, factor in (("ms", 1.0), (r"s(?:econds?)?", 1000.0))
    ),
    (re.compile(rf"{_NUMBER}\s*ms\b", re.I), 1.0),
    (re.compile(rf"{_NUMBER}\s*s(?:econds?)?\b", re.I), 1000.0),
)


@dataclass(frozen=True)
class TimedCase:
    """One case of a report.

    Attributes:
        name: Its name, in one line.
        milliseconds: Its time; 0 or less if it failed.
        params: What tells cases apart first, or None.
        shape: What tells them apart next, or None.
        named: Whether the report gives the name.
        method: How it was timed, such as `cuda_graph`, or empty.
    """

    name: str
    milliseconds: float
    params: Hashable = None
    shape: Hashable = None
    named: bool = True
    method: str = ""

    @property
    def valid(self) -> bool:
        """Whether it has a time."""
        return self.milliseconds > 0


@dataclass(frozen=True)
class SuiteSpeedup:
    """The speedup by the suite's formula.

    Attributes:
        ratio: The mean of the ratios of all cases, or 0.
        base: Mean milliseconds of the valid cases of the start kernel.
        best: The same of the candidate.
        problem: Why there is no ratio, or empty.
    """

    ratio: float
    base: float
    best: float
    problem: str = ""

    def scored(self, rebuilt: bool) -> float:
        """Returns the ratio that the score takes.

        Args:
            rebuilt: Whether a ratio of 0 is rebuilt from both mean times, as by the first contract,
                even if cases have failed.
        """
        if self.ratio > 0 or not rebuilt:
            return self.ratio
        return self.base / self.best if self.base > 0 and self.best > 0 else 0.0


def parse_report(reports: object, printed: object) -> tuple[TimedCase, ...]:
    """Reads the cases of a performance command.

    Args:
        reports: The texts of its reports, in the order of `REPORTS`.
        printed: What it printed.

    Returns:
        The cases; empty if there are none by the rules of the suite.
    """
    printed = printed[-MAX_REPORT_CHARACTERS:] if isinstance(printed, str) else ""
    texts = reports[: len(REPORTS)] if isinstance(reports, list) else []
    values = [_json(text[:MAX_REPORT_CHARACTERS]) for text in texts if isinstance(text, str)]
    result = [line for line in printed.splitlines() if line.startswith(RESULT)]
    if len(result) == 1:
        stated = _json(result[0].removeprefix(RESULT))
        values = [stated.get("cases")] if isinstance(stated, dict) else []
    cases = next(filter(None, map(_of_json, values)), [])
    return tuple(cases or _of_lines(printed))[:MAX_CASES]


def suite_speedup(base: Sequence[TimedCase], best: Sequence[TimedCase]) -> SuiteSpeedup:
    """Returns the mean ratio of cases, if all of both sides match and have times.

    Args:
        base: The cases of the start kernel.
        best: Those of the candidate.

    Example:
        >>> one = [TimedCase("a", 2.0), TimedCase("b", 3.0)]
        >>> suite_speedup(one, [TimedCase("b", 1.0), TimedCase("a", 2.0)]).ratio
        2.0
    """
    means = _mean_time(base), _mean_time(best)
    if not (base and best):
        return SuiteSpeedup(0.0, *means, "no report")
    if failed := sum(not case.valid for case in (*base, *best)):
        return SuiteSpeedup(0.0, *means, f"{failed} cases have no time")
    pairs = _matched(base, best)
    if len(pairs) != len(base) or len(pairs) != len(best):
        return SuiteSpeedup(0.0, *means, "the cases of both sides do not match")
    return SuiteSpeedup(_mean([a.milliseconds / b.milliseconds for a, b in pairs]), *means)


def _mean_time(cases: Sequence[TimedCase]) -> float:
    return _mean([case.milliseconds for case in cases if case.valid])


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0


def _matched(
    base: Sequence[TimedCase], best: Sequence[TimedCase]
) -> list[tuple[TimedCase, TimedCase]]:
    """Pairs cases by their parameters, then by shape, then by name. Two single cases are a pair."""
    left, right = list(base), list(best)
    keys: tuple[Callable[[TimedCase], Hashable], ...] = (
        lambda case: case.params,
        lambda case: case.shape,
        lambda case: case.name if case.named else None,
    )
    pairs = []
    for key in keys:
        for one in list(left):
            same = [o for o in right if key(one) is not None and key(o) == key(one)]
            if same:
                pairs.append((one, same[0]))
                left.remove(one)
                right.remove(same[0])
    if not pairs and len(base) == len(best) == 1:
        return [(base[0], best[0])]
    return pairs


def _json(text: str) -> object:
    try:
        return json.loads(text) if text.strip() else None
    except (ValueError, RecursionError):
        return None


def _of_json(value: object) -> list[TimedCase]:
    """Returns the cases of a list, of `test_cases` of an object, or an object as one case."""
    if isinstance(value, dict) and "test_cases" in value:
        value = value["test_cases"]
    elif isinstance(value, dict):
        one = _case(value, 0)
        return [one] if one else _of_keys(value)
    if not isinstance(value, list):
        return []
    cases = (_case(one, number) for number, one in enumerate(value[:MAX_CASES]))
    return [case for case in cases if case is not None]


def _of_keys(value: Mapping[str, object]) -> list[TimedCase]:
    """Returns a case for each key of an object that ends with `_ms` and is no host time."""
    keys = sorted(k for k in value if k.endswith("_ms") and k not in _HOST)[:MAX_CASES]
    shape = _frozen(value.get("shape") or value.get("shapes"))
    times = [(inert_line(k, MAX_NAME_CHARACTERS), _number(value[k])) for k in keys]
    params = _frozen(value["params"]) if isinstance(value.get("params"), dict) else None
    return [TimedCase(k, t, params, shape, False) for k, t in times if t is not None]


def _case(value: object, number: int) -> TimedCase | None:
    if not isinstance(value, dict):
        return None
    time = _time(value)
    if time is None:
        return None
    params = value.get("params")
    return TimedCase(
        inert_line(
            str(value.get("test_case_id", f"test_case_{number}"))[:MAX_NAME_CHARACTERS],
            MAX_NAME_CHARACTERS,
        ),
        time,
        _frozen(params) if params and isinstance(params, dict) else None,
        _frozen(value.get("shape") or value.get("shapes")),
        "test_case_id" in value,
        inert_line(value["benchmark_method"], MAX_NAME_CHARACTERS)
        if "benchmark_method" in value
        else "",
    )


def _time(value: Mapping[str, object]) -> float | None:
    """Returns the milliseconds of a case: of the device before others, never those of the host."""
    for key in _DEVICE:
        if (time := _number(value.get(key))) is not None:
            return time
    for key in _AMBIGUOUS:
        if (time := _number(value.get(key))) is not None:
            return time if key == "time_ms" or time < _SECONDS else time * _SECONDS
    if any(key in value for key in _HOST):
        return None
    timing = value.get("timing_ms")
    for key in ("mean", "median", "min"):
        if isinstance(timing, dict) and key in timing:
            return _number(timing[key])
    throughput = _number(value.get("bytes_per_second_gs"))
    return 1.0 / throughput if throughput is not None and throughput > 0 else None


def _number(value: object) -> float | None:
    """Returns a number as the suite reads it; one that is not finite or too large is invalid."""
    if not isinstance(value, int | float | str) or (isinstance(value, str) and len(value) > 40):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and abs(number) <= MAX_CASE_MILLISECONDS else -1.0


def _frozen(value: object, depth: int = 0) -> Hashable:
    """Returns a value by which cases are compared; None if it is empty, too deep or too long."""
    if not value and depth == 0:
        return None
    if depth > MAX_DEPTH or (isinstance(value, str) and len(value) > MAX_NAME_CHARACTERS):
        return inert_line(value, MAX_NAME_CHARACTERS)
    if isinstance(value, dict):
        pairs = [
            (k[:MAX_NAME_CHARACTERS], _frozen(v, depth + 1))
            for k, v in [*value.items()][:MAX_CASES]
        ]
        return tuple(sorted(pairs, key=repr))
    if isinstance(value, list):
        return tuple(_frozen(one, depth + 1) for one in value[:MAX_CASES])
    return value if isinstance(value, int | float | str | None) else None


def _of_lines(printed: str) -> list[TimedCase]:
    """Returns the cases that printed lines state."""
    cases = [
        TimedCase(f"test_case_{int(number)}", time)
        for number, text in _CASE_LINE.findall(printed)[:MAX_CASES]
        if (time := _number(text)) is not None
    ]
    for index, (sizes, text) in enumerate(_SHAPE_LINE.findall(printed)[:MAX_CASES]):
        if (time := _number(text)) is not None:
            parts = tuple(int(part) for part in sizes.split(",") if part.strip().isdigit())
            cases.append(TimedCase(f"shape_{index}", time, shape=parts or None))
    if cases:
        return cases
    several = [_number(text) for text in _PERFORMANCE_LINE.findall(printed)[:MAX_CASES]]
    cases = [TimedCase(f"perf_{i}", time) for i, time in enumerate(several) if time is not None]
    if cases:
        return cases
    for pattern, factor in _SINGLE:
        if (match := pattern.search(printed)) and (time := _number(match.group(1))) is not None:
            return [TimedCase("test_case_0", time * factor)] if time > 0 else []
    return []
