"""Rows of aiter's tuning tables as points: each is the fastest kernel of a shape.

    {"set": "model_", "gfx": "gfx950", "lib": "flydsl", "kernel": "flydsl_bpreshuflle_...",
     "shape": {"M": "64", "N": "192", "K": "1024", "splitK": "0"},
     "dtypes": {"q_dtype_w": "float8_e4m3fn"}, "us": 3.2}

The time is that of the kernels, from a profiler, and has no floor. A profiler's time goes from the
dispatch of a kernel to its end, and so does the model's time with its launch (`LAUNCH_S`). So both
are compared as they are, with one launch for each kernel.
"""

from __future__ import annotations

from typing import Any

from benchmarks.clock.flydsl_names import NoConfigurationError, family_of, parse_name
from kernel_gym.sim.constants import LAUNCH_S

LANGUAGE = "flydsl"
TIMED_WITH_OPERATORS = frozenset({"flydsl_moe2"})
"""Families whose measured call has PyTorch's operators: it sets the result to zero."""
_NOT_THE_PROBLEM = frozenset({"solidx", "kernelId"})
"""Entries of a shape that number the kernel in the tuner's list."""


def is_tuning_row(raw: dict[str, Any]) -> bool:
    """Whether a row is one of a tuning table."""
    return "lib" in raw and "gfx" in raw and "id" not in raw


def identity(raw: dict[str, Any]) -> str:
    """The name of a row: its kernel, chip and problem."""
    return f"{raw.get('kernel')}|{raw.get('gfx')}|{_problem_text(raw)}"


def launch_of(raw: dict[str, Any]) -> dict[str, Any]:
    """The launch of a row: `language`, `gfx`, `family`, `configuration` and `problem`.

    Raises:
        NoConfigurationError: The row names no kernel that can be launched.
        KeyError: A field is missing.
        TypeError: A field has a wrong type.
    """
    if raw["lib"] != LANGUAGE:
        raise NoConfigurationError(f"a kernel in {raw['lib']} without a configuration")
    if not str(raw["gfx"]).startswith("gfx9"):
        raise NoConfigurationError(f"{raw['gfx']} is not simulated")
    configuration = parse_name(str(raw["kernel"]))
    return {
        "language": LANGUAGE,
        "gfx": str(raw["gfx"]),
        "family": configuration.family,
        "configuration": configuration.values,
        "problem": _problem(raw["shape"], raw.get("dtypes") or {}),
    }


def point_fields(raw: dict[str, Any]) -> dict[str, Any]:
    """The fields of a point of a row, without anything of what was measured.

    Raises:
        NoConfigurationError: The row names no kernel that can be launched.
        KeyError: A field is missing.
        TypeError: A field has a wrong type.
    """
    return {
        "identity": identity(raw),
        "family": family_of(str(raw["kernel"])),
        "group": f"{family_of(str(raw['kernel']))}|{raw['gfx']}|{_problem_text(raw)}",
        "kernel": str(raw["kernel"]),
        "launch": launch_of(raw),
        "overhead": LAUNCH_S * 1e6,
    }


def products(launch: dict[str, Any]) -> int:
    """Multiplications of a launch's problem, to order launches by the work of simulating them."""
    problem = launch["problem"]
    if "token" not in problem:
        return int(problem["M"] * problem["N"] * problem["K"])
    routed = problem["token"] * problem["topk"]
    rows = max(routed, min(routed, problem["expert"]) * problem["block_m"])
    matrices = 2 if launch["family"] == "flydsl_moe1" else 1
    return int(rows * problem["model_dim"] * problem["inter_dim"] * matrices)


def _problem(shape: dict[str, Any], dtypes: dict[str, Any]) -> dict[str, Any]:
    """Sizes as numbers, flags as truth values."""
    if not isinstance(shape, dict) or not isinstance(dtypes, dict):
        raise TypeError("shape and dtypes are objects")
    problem = {name: _value(value) for name, value in shape.items() if name not in _NOT_THE_PROBLEM}
    if dtypes.get("outdtype", dtypes.get("dtype")) != dtypes.get("dtype"):
        raise NoConfigurationError("PyTorch converts its result, and the time includes that")
    return problem


def _value(value: Any) -> Any:
    if value in ("True", "False"):
        return value == "True"
    return int(value) if str(value).lstrip("-").isdigit() else value


def _problem_text(raw: dict[str, Any]) -> str:
    parts = [raw.get(name) for name in ("shape", "dtypes")]
    entries = {n: v for part in parts if isinstance(part, dict) for n, v in part.items()}
    return ",".join(f"{n}={v}" for n, v in entries.items() if n not in _NOT_THE_PROBLEM)
