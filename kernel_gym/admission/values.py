"""The checks that need no kernel: rules 1 to 3 and 5 of admission."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import torch

from kernel_gym.judge.conditioning import is_fragile
from kernel_gym.judge.expected import Expected, compare, expect
from kernel_gym.tasks.controls.answers import (
    CONTROLS,
    ON_ADVERSARIAL,
    Control,
    ControlCase,
    copied,
    same_bits,
)
from kernel_gym.tasks.formula import compare_with_formula, load_formula
from kernel_gym.tasks.problem import Check, Problem, Scale
from kernel_gym.tasks.sampling import (
    adversarial_workloads,
    make_inputs,
    train_workloads,
    unseen_workloads,
)
from kernel_gym.tasks.special_values import is_special
from kernel_gym.tasks.verdicts import FAILS
from kernel_gym.tasks.worker_reference import Value
from kernel_gym.tasks.workload import Kind, Layout, Split, Workload

SEED = 0
"""The seed of data and unseen workloads, fixed so that verdicts are reproducible."""
MAX_BYTES, MAX_FLOPS = 8_000_000, 150_000_000
"""The most that a workload of the simulator may cost."""
MAX_ROUNDINGS = 32
"""The largest error of the reference, in rounding units of the largest output."""
PASSES = "passes"
"""The start of the result of a control that the check of values does not refuse."""


class RefusalKind(StrEnum):
    """Kinds of reasons for which values are refused."""

    FULL_SIZE = "fails at full size"
    IGNORED_INPUT = "ignored input"
    SEED_BLIND = "seed-blind"
    CONSTANT = "constant output"
    RANDOM = "random"
    TOLERANT = "hides in the tolerance"
    COARSE = "coarse reference"
    ILL_CONDITIONED = "ill-conditioned"
    NAN = "NaN"
    TOO_DEAR = "too dear"
    OTHER = "other"


@dataclass(frozen=True)
class Refusal:
    """A reason to refuse a problem, as a kind and as a sentence.

    Attributes:
        kind: What is wrong.
        text: The sentence.
        without_answer: Whether the reference or the oracle has no answer to judge by.
    """

    kind: RefusalKind
    text: str
    without_answer: bool = False


_CONTROL_KINDS = {
    "stale output": RefusalKind.SEED_BLIND,
    "constant": RefusalKind.CONSTANT,
    "zeros": RefusalKind.CONSTANT,
    "mean": RefusalKind.CONSTANT,
}
"""Kinds by the control that passes; the others hide in the tolerance."""


@dataclass(frozen=True)
class ValueReport:
    """Reasons, results and notes of the checks of values.

    Attributes:
        refusals: Reasons for a refusal; empty if there is none.
        controls: The result of each control.
        notes: Parameters of a module that change no output, such as a bias before a normalisation.
    """

    refusals: tuple[Refusal, ...]
    controls: Mapping[str, str]
    notes: tuple[str, ...] = ()

    @property
    def refused(self) -> tuple[str, ...]:
        """The reasons as sentences."""
        return tuple(refusal.text for refusal in self.refusals)


def check_values(problem: Problem, scale: Scale, seed: int) -> ValueReport:
    """Checks a problem's reference, oracle and checks of values on its workloads of a scale.

    Args:
        problem: The problem to check.
        scale: The scale of its workloads.
        seed: The seed of data and unseen workloads.
    """
    train = sorted(train_workloads(problem, scale), key=lambda w: problem.elements(w.dims))
    cases = {w: expect(problem, w, seed) for w in train}
    others = (
        *adversarial_workloads(problem, scale, "triton"),
        *unseen_workloads(problem, scale, "triton", seed),
    )
    reasons = [*_against_formula(problem, seed), *_dear(problem)]
    for workload in (*train, *others):
        reasons += _unsound(problem, workload, cases.get(workload) or expect(problem, workload, 0))
    ignored = _indifferent(problem, cases, seed)
    reasons += [
        Refusal(RefusalKind.IGNORED_INPUT, f"input {name!r} changes no output")
        for name in ignored
        if name not in problem.parameters
    ]
    reasons += _fragile(problem, cases)
    tiny = {w: expect(problem, w, seed) for w in _contiguous(others, Split.ADVERSARIAL)}
    controls = {
        name: _try(control, problem, tiny | cases if name in ON_ADVERSARIAL else cases, seed)
        for name, control in CONTROLS.items()
    }
    reasons += [
        Refusal(_CONTROL_KINDS.get(name, RefusalKind.TOLERANT), f"{name}: {text}")
        for name, text in controls.items()
        if text.startswith(PASSES)
    ]
    notes = [f"parameter {n!r} changes no output" for n in ignored if n in problem.parameters]
    return ValueReport(tuple(dict.fromkeys(reasons)), controls, tuple(notes))


def _contiguous(workloads: Sequence[Workload], split: Split) -> list[Workload]:
    return [w for w in workloads if w.split is split and w.layout is Layout.CONTIGUOUS]


def _against_formula(problem: Problem, seed: int) -> list[Refusal]:
    """Checks that the oracle agrees with the independent formula, if there is one (rule 1)."""
    try:
        small = load_formula(problem).small
    except ModuleNotFoundError:
        return []
    workload = Workload(small, Split.TRAIN, Kind.TRAIN, problem.distributions[0])
    try:
        compare_with_formula(problem, make_inputs(problem, workload, seed))
    except AssertionError as error:
        difference = " ".join(str(error).split())[:200]
        return [Refusal(RefusalKind.OTHER, f"the oracle differs from the formula: {difference}")]
    return []


def _dear(problem: Problem) -> list[Refusal]:
    """Checks that workloads of the simulator's scale stay within a budget of work (rule 5)."""
    budgets = {"bytes": (problem.bytes, MAX_BYTES), "FLOPs": (problem.flops, MAX_FLOPS)}
    return [
        Refusal(
            RefusalKind.TOO_DEAR,
            f"{dict(dims)} costs {cost(dims):,} {name}, at most {most:,} fit the simulator",
        )
        for dims in problem.train[Scale.SIM]
        for name, (cost, most) in budgets.items()
        if cost(dims) > most
    ]


_RANGES_HINT = "; in ranges.toml state a smaller reach, or exclude a value such as `largest`"


def _unsound(problem: Problem, workload: Workload, expected: Expected) -> list[Refusal]:
    """Checks that the oracle has no NaN, and that the reference passes twice equally (rule 1)."""
    reasons = []
    if any(torch.isnan(out).any() for out in expected.oracle if out.is_floating_point()):
        reasons.append(Refusal(RefusalKind.NAN, f"the oracle has NaN on {workload}", True))
    verdict = compare(problem, expected, expected.reference)
    if not verdict.passed:
        hint = _RANGES_HINT if is_special(workload.distribution) else ""
        text = f"the reference fails on {workload}: {verdict.message}{hint}"
        reasons.append(Refusal(RefusalKind.OTHER, text, without_answer=True))
    for text in _coarse(problem, expected):
        reasons.append(Refusal(RefusalKind.COARSE, f"{text} on {workload}"))
    first, second = (_answers(problem, expected, seed) for seed in (1, 2))
    if not same_bits(first, second):
        text = f"reference or oracle differ between two calls on {workload}"
        reasons.append(Refusal(RefusalKind.RANDOM, text, without_answer=True))
    return reasons


def _answers(problem: Problem, expected: Expected, seed: int) -> tuple[torch.Tensor, ...]:
    """Returns both answers. A draw from the global generator would depend on the seed."""
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(seed)
        inputs = expected.inputs
        return (*problem.reference(**copied(inputs)), *problem.oracle(**copied(inputs)))


def _coarse(problem: Problem, expected: Expected) -> list[str]:
    """Checks that the error of the reference is small, since it sets the tolerance (rule 1)."""
    reasons = []
    outputs = zip(problem.outputs, expected.oracle, expected.reference, strict=True)
    for output, exact, reference in outputs:
        if output.check is not Check.CLOSE or not exact.numel():
            continue
        finite = torch.isfinite(exact)
        error = torch.where(finite, reference.double() - exact, 0.0).abs().max()
        unit = torch.finfo(output.dtype).eps / 2
        roundings = float(error / (unit * torch.where(finite, exact, 0.0).abs().max() + 1e-30))
        if roundings > MAX_ROUNDINGS and float(error) > torch.finfo(output.dtype).tiny:
            text = f"the reference's {output.name!r} is {roundings:.0f} roundings off"
            reasons.append(text + _advice_on_choices(problem))
    return reasons


_CHOICES = re.compile(r"\b(topk|argmax|argmin|argsort|sort|multinomial)\b")


def _advice_on_choices(problem: Problem) -> str:
    """Returns advice for a reference that chooses by value, which rounding turns over, or ""."""
    choices = sorted(set(_CHOICES.findall(problem.reference_source())))
    if not choices:
        return ""
    return (
        f" (it chooses by {', '.join(choices)}, and another rounding chooses otherwise: make the "
        "choice an input, such as the routing of experts)"
    )


def _fragile(problem: Problem, cases: Mapping[Workload, Expected]) -> list[Refusal]:
    """Checks the conditioning of generated problems, since no start kernel is run (rule 1)."""
    if problem.folder is not None:
        return []
    blown_up = (w for w, expected in cases.items() if is_fragile(problem, expected))
    return [
        Refusal(
            RefusalKind.ILL_CONDITIONED,
            f"ill-conditioned: one unit in the last place decides on {workload}",
        )
        for workload in blown_up
    ][:1]


def _indifferent(problem: Problem, cases: Mapping[Workload, Expected], seed: int) -> list[str]:
    """Returns the tensors that depend on the seed and change no output of any workload (rule 3)."""
    ignored: set[str] = set()
    used: set[str] = set()
    for workload, expected in cases.items():
        other = make_inputs(problem, workload, seed + 1)
        for name, value in expected.inputs.items():
            if name in used or not isinstance(value, torch.Tensor):
                continue
            if not same_bits((value,), (other[name],)):  # type: ignore[arg-type]
                (used if _matters(problem, expected, name, other[name]) else ignored).add(name)
    return sorted(ignored - used)


def _matters(problem: Problem, expected: Expected, name: str, value: Value) -> bool:
    try:
        with torch.no_grad():
            answer = problem.oracle(**copied({**expected.inputs, name: value}))
    except (IndexError, RuntimeError):
        return True  # the other inputs do not fit this one: it is used
    pairs = zip(answer, problem.outputs, strict=True)
    rounded = tuple(out.to(output.dtype) for out, output in pairs)
    return not compare(problem, expected, rounded).passed


def _try(control: Control, problem: Problem, cases: Mapping[Workload, Expected], seed: int) -> str:
    """Checks that a control is refused (rule 2). Train workloads are tried until it is."""
    seen: set[str] = set()
    caught: set[str] = set()
    reason, complete = "", False
    for workload, expected in cases.items():
        if workload.split is Split.TRAIN and complete:
            break
        wrong = control(ControlCase(problem, workload, seed))
        if isinstance(wrong, str):
            reason = wrong
            continue
        seen |= set(wrong)
        caught |= {
            label
            for label, outputs in wrong.items()
            if label not in caught and not compare(problem, expected, outputs).passed
        }
        complete = seen == caught and len(wrong) == len(seen)
    if not seen:
        return f"does not apply: {reason}"
    return FAILS if seen == caught else f"{PASSES}: {', '.join(sorted(seen - caught))}"
