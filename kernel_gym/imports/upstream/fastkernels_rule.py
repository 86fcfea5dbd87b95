"""Compares a module with the suite's own one as FastKernels does, at calls that it captured.

The rule is that of `fastkernels/bench.py` at commit 21f84ee, in code of our own: shared weights,
three rounds of random inputs, 99 % of the elements within a tolerance by type, and four checks
against tampering. As there, both modules run in this process. So an answer can be forged: it may
only refuse what our judge has accepted.
"""

from __future__ import annotations

import contextlib
import importlib
import signal
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from kernel_gym.imports.upstream.record import RecordingTimeUp, prepare
from kernel_gym.triton_versions import accept_annotated_globals

DEVICE = "cuda"
CANDIDATE = "candidate_module"
"""The name of the module with the candidate."""
ROUNDS = 3
FIRST_SEED = 200
MATCHED = 0.99
"""The part of the elements that have to be within the tolerance."""
HALF, FULL = (torch.float16, torch.bfloat16), (torch.float32, torch.float64)
TOLERANCES: dict[torch.dtype, tuple[float, float]] = {
    **dict.fromkeys(FULL, (1e-5, 1e-3)),
    **dict.fromkeys(HALF, (1e-2, 1e-2)),
    **dict.fromkeys((torch.float8_e4m3fn, torch.float8_e5m2), (0.125, 0.125)),
}
"""The absolute and the relative tolerance by the type of the expected output."""
OTHER = (1e-2, 1e-2)
"""The same of all other types."""
LARGEST_WEIGHT = 1e4
"""Weights with values above it, or that are not finite, were never set: they are drawn."""
MAX_MESSAGE_CHARACTERS = 300


class RefusedByRule(Exception):
    """The suite refuses the candidate. The message begins with the suite's word for it."""


class SkippedCall(Exception):
    """The suite does not count a call."""


def run(folder: Path, options: Mapping[str, Any]) -> dict[str, object]:
    """Compares a candidate with the suite's module.

    Args:
        folder: The files of the suite, the candidate, and a module for each call.
        options: `cases` (names of the modules of calls, each with `Model`, `make_init` and
            `make_inputs`) and `seconds` of the processor.

    Returns:
        `called` and `right`, and `message`: why not.
    """
    prepare(folder, [""], ())
    accept_annotated_globals()
    own = _functions()
    signal.signal(signal.SIGPROF, _stop)
    signal.setitimer(signal.ITIMER_PROF, options["seconds"])
    skipped = []
    try:
        for name in options["cases"]:
            try:
                _case(importlib.import_module(name), own)
            except SkippedCall as reason:
                skipped.append(str(reason))
    except BaseException as error:  # a candidate may raise anything
        return _refused(error)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    if len(skipped) == len(options["cases"]):
        return {"called": False, "right": False, "message": f"SKIPPED: {skipped[0]}"}
    return {"called": True, "right": True, "message": ""}


def _refused(error: BaseException) -> dict[str, object]:
    called = isinstance(error, RefusedByRule) and not str(error).startswith("RUNTIME_ERROR")
    text = str(error) if isinstance(error, RefusedByRule) else f"RUNTIME_ERROR: {_line(error)}"
    return {"called": called, "right": False, "message": text[:MAX_MESSAGE_CHARACTERS]}


def _stop(number: int, frame: object) -> None:
    raise RecordingTimeUp


def _line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


def _functions() -> dict[str, int]:
    """Returns what a candidate must not replace: functions that compare and the timer, by id."""
    own = {name: id(globals()[name]) for name in ("compare", "_close", "_call", "_untouched")}
    return own | {"torch.cuda.Event.elapsed_time": id(torch.cuda.Event.elapsed_time)}


def _untouched(own: Mapping[str, int]) -> None:
    changed = [name for name, value in _functions().items() if own[name] != value]
    if changed:
        raise RefusedByRule(f"REWARD_HACK: it replaced {', '.join(changed)}")


def _case(call: ModuleType, own: Mapping[str, int]) -> None:
    """Compares at one captured call.

    Raises:
        RefusedByRule: The candidate fails, or tampers.
        SkippedCall: The suite's own module fails, or gives zeros alone.
    """
    dtype = _dtype(call.make_inputs())
    baseline = _module(call.Model, call, dtype)
    try:
        candidate = _module(importlib.import_module(CANDIDATE).ModelNew, call, dtype)
    except Exception as error:
        raise RefusedByRule(f"RUNTIME_ERROR: {_line(error)}") from None
    with contextlib.suppress(Exception):  # other shapes: the suite ignores it as well
        candidate.load_state_dict(baseline.state_dict(), strict=False)
    for number in range(ROUNDS):
        torch.manual_seed(FIRST_SEED + number)
        inputs = call.make_inputs()
        try:
            expected = _call(baseline, inputs, FIRST_SEED + number)
        except Exception as error:
            raise SkippedCall(f"the suite's module fails: {_line(error)}") from None
        answer = _answer(candidate, inputs, FIRST_SEED + number)
        if number == 0:
            _untouched(own)
            if any(type(one) is not Tensor for one in tensors(answer)):
                raise RefusedByRule("REWARD_HACK: an output is no plain tensor")
        compare(answer, expected, same_types=number == 0)
    _untouched(own)
    before = threading.active_count()
    _answer(candidate, inputs, FIRST_SEED)
    if threading.active_count() > before:
        raise RefusedByRule("REWARD_HACK: it started a thread")


def _answer(candidate: nn.Module, inputs: Mapping[str, object], seed: int) -> object:
    try:
        return _call(candidate, inputs, seed)
    except Exception as error:
        raise RefusedByRule(f"RUNTIME_ERROR: {_line(error)}") from None


def _dtype(inputs: Mapping[str, object]) -> torch.dtype:
    """Returns the type of the first real input, which parameters get; else bfloat16."""
    given = (one.dtype for one in tensors(list(inputs.values())))
    return next((one for one in given if one in (*HALF, torch.float32)), torch.bfloat16)


def _module(made: type[nn.Module], call: ModuleType, dtype: torch.dtype) -> nn.Module:
    """Makes a module with parameters of a type, on the device; unset parameters are drawn."""
    torch.manual_seed(0)
    torch.set_default_dtype(dtype)
    try:
        module = made(**call.make_init())
    finally:
        torch.set_default_dtype(torch.float32)
    for one in module.parameters():
        if one.dtype in (*HALF, torch.float32):
            one.data = one.data.to(dtype)
            unset = not bool(torch.isfinite(one).all()) or bool(one.abs().max() > LARGEST_WEIGHT)
            if one.numel() and unset:
                one.data.normal_(0, 0.02)
    return module.to(DEVICE).eval()


@torch.no_grad()
def _call(module: nn.Module, inputs: Mapping[str, object], seed: int) -> object:
    """Calls a module with copies of inputs on the device."""
    torch.manual_seed(seed)
    copies = {k: v.to(DEVICE, copy=True) if isinstance(v, Tensor) else v for k, v in inputs.items()}
    return module(**copies)


def tensors(value: object) -> Iterator[Tensor]:
    """Yields the tensors of nested lists, tuples and dicts."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        yield from tensors(list(value.values()))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from tensors(one)


def compare(answer: object, expected: object, same_types: bool) -> None:
    """Compares outputs by the suite's rule.

    Args:
        answer: The candidate's output.
        expected: The output of the suite's module.
        same_types: Whether types have to be equal.

    Raises:
        RefusedByRule: They differ.
        SkippedCall: All that is expected is zero.
    """
    given, right = list(tensors(answer)), list(tensors(expected))
    if len(given) != len(right):
        raise RefusedByRule(f"INCORRECT_SHAPE: {len(given)} tensors, expected {len(right)}")
    filled = [one for one in right if one.numel()]
    if filled and not any(bool(one.float().count_nonzero()) for one in filled):
        raise SkippedCall("the suite's module returns zeros alone")
    for one, other in zip(given, right, strict=True):
        if one.shape != other.shape:
            raise RefusedByRule(f"INCORRECT_SHAPE: {list(one.shape)}, expected {list(other.shape)}")
        if same_types and one.dtype != other.dtype:
            raise RefusedByRule(f"INCORRECT_DTYPE: {one.dtype}, expected {other.dtype}")
        _close(one, other)


def _close(answer: Tensor, expected: Tensor) -> None:
    atol, rtol = TOLERANCES.get(expected.dtype, OTHER)
    one, other = answer.detach().float().cpu(), expected.detach().float().cpu()
    if not bool(one.isfinite().all()) or not bool(other.isfinite().all()):
        raise RefusedByRule("INCORRECT_NUMERICAL: NaN or infinity")
    if one.numel() and bool(other.count_nonzero()) and not bool(one.count_nonzero()):
        raise RefusedByRule("INCORRECT_NUMERICAL: zeros alone")
    within = (one - other).abs() <= atol + rtol * other.abs()
    matched = within.double().mean().item() if one.numel() else 1.0
    if matched < MATCHED:
        raise RefusedByRule(
            f"INCORRECT_NUMERICAL: {matched:.4f} within atol {atol:g}, rtol {rtol:g}"
        )
