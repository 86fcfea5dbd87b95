"""Runs a suite's own tests on the suite's code and on a candidate, and compares as the suite does.

Both run in this process, one after the other, with the same seed. So an answer can be forged: it
may only refuse what our judge has accepted.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import math
import random
import signal
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypedDict

import torch

from kernel_gym.imports.upstream.record import RecordingTimeUp, prepare
from kernel_gym.triton_versions import accept_annotated_globals

MAX_MESSAGE_CHARACTERS = 300
SCALARS = 1e-5
"""The relative and the absolute tolerance of KernelBenchX for numbers."""
HALF, FULL = (torch.float16, torch.bfloat16), (torch.float32, torch.float64)

Thresholds = Mapping[str, float] | None
"""Bounds of the distances by their name."""


class Differs(AssertionError):
    """The answers of the candidate are not those of the suite's code, by the suite's rule."""


class TestOptions(TypedDict):
    """Options of a comparison, see `run`."""

    file: str
    pristine: str
    candidate: str
    tests: str
    rule: str
    thresholds: Thresholds
    path: Sequence[str]
    seed: int
    seconds: float


def run(folder: Path, options: TestOptions) -> dict[str, object]:
    """Compares a candidate with the suite's code on the suite's tests.

    Args:
        folder: The files of the suite.
        options: `file`, `pristine` and `candidate` (texts of the upper half), `tests` (the text of
            the lower half), `rule` (a key of `RULES`), `thresholds`, `path`, `seed` and
            `seconds` of the processor.

    Returns:
        `called` and `right`, and `message`: why not.
    """
    prepare(folder, options["path"], ())
    accept_annotated_globals()
    signal.signal(signal.SIGPROF, _stop)
    signal.setitimer(signal.ITIMER_PROF, options["seconds"])
    try:
        expected = _answers(folder, options, options["pristine"])
    except BaseException as error:  # code of a suite may raise anything
        return {"called": False, "right": False, "message": f"the suite's code: {_line(error)}"}
    try:
        answers = _answers(folder, options, options["candidate"])
    except BaseException as error:  # a candidate may raise anything
        return {"called": False, "right": False, "message": _line(error)}
    try:
        RULES[options["rule"]](answers, expected, options["thresholds"])
    except Exception as error:  # a candidate may return anything
        return {"called": True, "right": False, "message": _line(error)}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return {"called": True, "right": True, "message": ""}


def _stop(number: int, frame: object) -> None:
    raise RecordingTimeUp


def _line(error: BaseException) -> str:
    name = "" if isinstance(error, Differs) else f"{type(error).__name__}: "
    return " ".join(f"{name}{error}".split())[:MAX_MESSAGE_CHARACTERS]


def _answers(folder: Path, options: TestOptions, implementation: str) -> dict[str, object]:
    """Runs the tests on an implementation, and returns its printed text and global names."""
    path = str(folder / options["file"])
    name = "upstream" if options["rule"] == "result_gold" else "__main__"  # as the suite runs them
    module = types.ModuleType(name)
    module.__file__ = path
    sys.modules[name] = module
    random.seed(options["seed"])
    torch.manual_seed(options["seed"])
    text = f"{implementation}\n{options['tests']}"
    (folder / options["file"]).write_text(text, encoding="utf-8")  # Triton reads sources there
    linecache.checkcache(path)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(text, path, "exec", dont_inherit=True), module.__dict__)
    return {**module.__dict__, "printed": printed.getvalue()}


def _printed(answers: Mapping[str, object], expected: Mapping[str, object], _: Thresholds) -> None:
    """TritonBench's rule: both print the same text."""
    if answers["printed"] != expected["printed"]:
        raise Differs("it prints another text")


def _all_close(
    answers: Mapping[str, object], expected: Mapping[str, object], _: Thresholds
) -> None:
    """GEAK-eval's rule: `result_gold` is close; 1e-2 and 1e-1 alone, 1e-3 in a list or dict."""
    pair = answers.get("result_gold"), expected.get("result_gold")
    if pair[0] is None or pair[1] is None:
        raise Differs("there is no result_gold")
    _close(*pair, "result_gold", 1e-2, 1e-1)


def _close(answer: object, expected: object, name: str, atol: float, rtol: float) -> None:
    if isinstance(expected, dict) and isinstance(answer, dict):
        answer, expected = list(answer.values()), list(expected.values())
    if isinstance(expected, list | tuple) and isinstance(answer, list | tuple):
        for i, (one, other) in enumerate(zip(answer, expected, strict=False)):
            _close(one, other, f"{name}[{i}]", 1e-3, 1e-3)
    elif isinstance(expected, torch.Tensor) and isinstance(answer, torch.Tensor):
        if not torch.allclose(answer, expected, atol=atol, rtol=rtol):
            raise Differs(f"{name} is not close")
    elif answer != expected:
        raise Differs(f"{name} differs")


def _results(
    answers: Mapping[str, object], expected: Mapping[str, object], thresholds: Thresholds
) -> None:
    """KernelBenchX's rule: `test_results` is close, or within the thresholds of its list."""
    pair = answers.get("test_results"), expected.get("test_results")
    if pair[0] is None or pair[1] is None:
        raise Differs("there are no test_results")
    _same(*pair, "test_results", thresholds)


def _same(answer: object, expected: object, name: str, thresholds: Thresholds) -> None:
    if isinstance(expected, dict) and isinstance(answer, dict):
        if set(answer) != set(expected):
            raise Differs(f"{name} has other keys")
        for key in expected:
            _same(answer[key], expected[key], f"{name}.{key}", thresholds)
    elif isinstance(expected, list | tuple) and isinstance(answer, list | tuple):
        if len(answer) != len(expected):
            raise Differs(f"{name} has another length")
        for i, (one, other) in enumerate(zip(answer, expected, strict=True)):
            _same(one, other, f"{name}[{i}]", thresholds)
    elif isinstance(expected, torch.Tensor) and isinstance(answer, torch.Tensor):
        _tensor(answer, expected, name, thresholds)
    elif not _equal(answer, expected):
        raise Differs(f"{name} differs")


def _equal(answer: object, expected: object) -> bool:
    """Whether two values that are no tensors are equal, numbers within a tolerance."""
    if isinstance(expected, float) and isinstance(answer, float):
        return math.isclose(answer, expected, rel_tol=SCALARS, abs_tol=SCALARS)
    return bool(answer == expected)


def _tensor(
    answer: torch.Tensor, expected: torch.Tensor, name: str, thresholds: Thresholds
) -> None:
    if answer.shape != expected.shape or answer.dtype != expected.dtype:
        raise Differs(f"{name} has another shape or dtype")
    if thresholds:
        figures = precision(answer.float().cpu(), expected.float().cpu())
        enough = figures["cosine_sim"] >= thresholds.get("cosine_sim", 0.99) and all(
            figures[key] <= thresholds.get(key, 0.01) for key in ("l1_relative", "rmse")
        )
        if not enough:
            told = ", ".join(f"{key} {value:.4g}" for key, value in figures.items())
            raise Differs(f"{name}: {told}")
        return
    tolerance = 5e-3 if expected.dtype in HALF else 1e-5 if expected.dtype in FULL else 0.0
    try:
        torch.testing.assert_close(
            answer.cpu(), expected.cpu(), rtol=tolerance, atol=tolerance, equal_nan=True
        )
    except AssertionError as error:
        raise Differs(f"{name}: {error}") from None


def precision(answer: torch.Tensor, expected: torch.Tensor) -> dict[str, float]:
    """Returns KernelBenchX's three distances of an answer.

    Args:
        answer: The answer, float32.
        expected: The expected one, float32, of the same shape.

    Returns:
        `cosine_sim`, the cosine of both as vectors, 1 if both are zero and 0 if one is;
        `l1_relative`, the sum of absolute differences over that of expected values; and `rmse`.
    """
    one, other = answer.flatten(), expected.flatten()
    norms = [float(torch.linalg.vector_norm(part)) for part in (one, other)]
    zeros = sum(norm < 1e-12 for norm in norms)
    cosine = {2: 1.0, 1: 0.0}.get(zeros)
    if cosine is None:
        cosine = float(torch.nn.functional.cosine_similarity(one, other, dim=0))
    difference = (one - other).abs().sum()
    return {
        "cosine_sim": cosine,
        "l1_relative": float(difference / other.abs().sum().clamp_min(1e-12)),
        "rmse": float((one - other).square().mean().sqrt()),
    }


RULES: Mapping[str, Callable[[Mapping[str, object], Mapping[str, object], Thresholds], None]] = {
    "printed": _printed,
    "result_gold": _all_close,
    "test_results": _results,
}
"""The rules of suites by the name of what they compare."""
