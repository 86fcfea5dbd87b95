"""Runs one case of a kernel file's own benchmark, with a stand-in for the suite's timer.

The files of AMD-AGI/GEAK-eval and of the tasks made from them measure themselves: a parametrised
`test_performance` makes the inputs, and gives a timer the call and the parameters that a point
repeats. So the launch is the one that its authors measured, and needs no recipe.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from benchmarks.clock.launches import load_kernels

TIMER_MODULE = "performance_utils_pytest"
TEST = "test_performance"
MAX_CASES = 256
"""Cases of a benchmark that are tried until one has the point's parameters."""


class NoSuchCase(LookupError):
    """The benchmark has no case with the point's parameters."""


class _Reached(BaseException):
    """The benchmark reached its timer."""

    def __init__(self, call: Callable[[], object], parameters: dict[str, Any]) -> None:
        self.call, self.parameters = call, parameters


class _Timer:
    """Stands for the suite's timer: keeps the call and ends the benchmark."""

    def __init__(self, op_callable: Callable[[], object], op_name: str = "", config: Any = None):
        self.call = op_callable

    def run_benchmark(self, current_params_dict: dict[str, Any], **_: object) -> None:
        raise _Reached(self.call, current_params_dict)


def benchmarked_call(path: Path, parameters: dict[str, Any]) -> Callable[[], object]:
    """The call that a file's benchmark times with some parameters; its inputs exist.

    Args:
        path: The file. It runs: only bring files that you trust.
        parameters: All names and values that the benchmark gives its timer.

    Raises:
        NoSuchCase: If no case has these parameters.
    """
    _stand_in_for_timers(path)
    test = getattr(load_kernels(path), TEST, None)
    if test is None:
        raise NoSuchCase(f"{path.name} has no {TEST}")
    cases = sorted(_cases(test), key=lambda case: -_shared(case, parameters))
    for case in cases[:MAX_CASES]:
        reached = _reach(test, case)
        if reached is not None and _plain(reached.parameters) == _plain(parameters):
            return reached.call
    raise NoSuchCase(f"{TEST} of {path.name} has no case with these parameters")


def has_tuner(path: Path) -> bool:
    """Whether the file has a kernel whose first call tries several configurations."""
    from triton.runtime.autotuner import Autotuner

    return any(isinstance(value, Autotuner) for value in vars(load_kernels(path)).values())


def _stand_in_for_timers(path: Path) -> None:
    """Puts a stand-in for each module of a timer that a file imports, and for its packages."""
    timer = ModuleType(TIMER_MODULE)
    timer.PytestBenchmarker = _Timer  # type: ignore[attr-defined]
    timer.do_bench_config = lambda **_: None  # type: ignore[attr-defined]
    timer.save_all_benchmark_results = lambda *_: None  # type: ignore[attr-defined]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").endswith(TIMER_MODULE):
            parts = str(node.module).split(".")
            for end in range(1, len(parts)):
                package = sys.modules.setdefault(".".join(parts[:end]), ModuleType(parts[end - 1]))
                package.__path__ = []
            sys.modules[str(node.module)] = timer
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("triton"):
            _stand_in_for_names(str(node.module), [alias.name for alias in node.names])


def _stand_in_for_names(module: str, names: list[str]) -> None:
    """Puts a stand-in for each name that the installed Triton lacks; to call it is an error."""
    with contextlib.suppress(ImportError):
        loaded = importlib.import_module(module)
        for name in names:
            is_module = hasattr(loaded, "__path__") and importlib.util.find_spec(f"{module}.{name}")
            if not hasattr(loaded, name) and not is_module:
                setattr(loaded, name, None)


def _cases(test: Any) -> Iterator[dict[str, Any]]:
    """Yields the arguments of each case of a parametrised test."""
    axes: list[list[dict[str, Any]]] = []
    for mark in getattr(test, "pytestmark", ()):
        if mark.name != "parametrize":
            continue
        names, values = mark.args[:2]
        names = [n.strip() for n in names.split(",")] if isinstance(names, str) else list(names)
        rows = [getattr(value, "values", value) if _is_param(value) else value for value in values]
        axes.append(
            [
                dict(zip(names, row, strict=True))
                if len(names) > 1
                else {names[0]: row[0] if _is_param(value) else row}
                for value, row in zip(values, rows, strict=True)
            ]
        )
    for case in itertools.product(*axes):
        yield {name: value for part in case for name, value in part.items()}


def _is_param(value: Any) -> bool:
    return type(value).__name__ == "ParameterSet"


def _leaves(value: Any) -> list[str]:
    """The numbers and texts in a value."""
    if isinstance(value, dict):
        return [leaf for each in value.values() for leaf in _leaves(each)]
    if isinstance(value, list | tuple):
        return [leaf for each in value for leaf in _leaves(each)]
    return [str(value)]


def _shared(case: dict[str, Any], parameters: dict[str, Any]) -> int:
    """How many values of a case the parameters have, less those that they lack."""
    values = _leaves(parameters)
    score = 0
    for leaf in _leaves(case):
        if leaf in values:
            values.remove(leaf)
            score += 1
        else:
            score -= 1
    return score + sum(str(case.get(name)) == str(value) for name, value in parameters.items())


def _reach(test: Any, case: dict[str, Any]) -> _Reached | None:
    """Runs a case until its timer; None if it skips or ends before."""
    from _pytest.outcomes import OutcomeException

    request = SimpleNamespace(node=SimpleNamespace(name="case"))
    known = {"request": request} if "request" in test.__code__.co_varnames else {}
    try:
        test(**case, **known)
    except _Reached as reached:
        return reached
    except OutcomeException:
        return None
    return None


def _plain(parameters: dict[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in parameters.items()}
