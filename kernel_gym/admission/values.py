"""What can be told of a problem without running a kernel: rules 1-3 and 5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from kernel_gym.admission.conditioning import is_fragile
from kernel_gym.judge.expected import Expected, compare, expect
from kernel_gym.tasks.controls.answers import (
    CONTROLS,
    ON_ADVERSARIAL,
    Case,
    Control,
    copied,
    same_bits,
)
from kernel_gym.tasks.formula import compare_with_formula, load_formula
from kernel_gym.tasks.problem import Check, Problem, Scale, Value
from kernel_gym.tasks.sampling import (
    adversarial_workloads,
    make_inputs,
    train_workloads,
    unseen_workloads,
)
from kernel_gym.tasks.verdicts import FAILS
from kernel_gym.tasks.workload import Kind, Layout, Split, Workload

SEED = 0
"""Verdicts are reproducible: data and unseen workloads come from here."""
MOST_BYTES, MOST_FLOPS = 8_000_000, 150_000_000
"""What a workload of the simulator may cost."""
MOST_ROUNDINGS = 32
"""Largest error of the reference, in units of rounding of the largest output."""
PASSES = "passes"
"""How the finding on a control begins that the check of values does not catch."""


@dataclass(frozen=True)
class ValueReport:
    """Why the problem is refused (empty when it is not), and what became of each control."""

    refused: tuple[str, ...]
    controls: Mapping[str, str]


def check_values(problem: Problem, scale: Scale, seed: int) -> ValueReport:
    """Tries a problem's reference, oracle and checks on its workloads of a scale."""
    train = sorted(train_workloads(problem, scale), key=lambda w: problem.elements(w.dims))
    cases = {w: expect(problem, w, seed) for w in train}
    others = (
        *adversarial_workloads(problem, scale, "triton"),
        *unseen_workloads(problem, scale, "triton", seed),
    )
    reasons = [*_against_formula(problem, seed), *_dear(problem)]
    for workload in (*train, *others):
        reasons += _unsound(problem, workload, cases.get(workload) or expect(problem, workload, 0))
    reasons += _indifferent(problem, cases, seed)
    reasons += _fragile(problem, cases)
    tiny = {w: expect(problem, w, seed) for w in _contiguous(others, Split.ADVERSARIAL)}
    controls = {
        name: _try(control, problem, tiny | cases if name in ON_ADVERSARIAL else cases, seed)
        for name, control in CONTROLS.items()
    }
    reasons += [f"{name}: {found}" for name, found in controls.items() if found.startswith(PASSES)]
    return ValueReport(tuple(dict.fromkeys(reasons)), controls)


def _contiguous(workloads: Sequence[Workload], split: Split) -> list[Workload]:
    return [w for w in workloads if w.split is split and w.layout is Layout.CONTIGUOUS]


def _against_formula(problem: Problem, seed: int) -> list[str]:
    """Rule 1: the oracle agrees with a formula written apart from it, if the folder has one."""
    try:
        small = load_formula(problem).small
    except ModuleNotFoundError:
        return []
    workload = Workload(small, Split.TRAIN, Kind.TRAIN, problem.distributions[0])
    try:
        compare_with_formula(problem, make_inputs(problem, workload, seed))
    except AssertionError as error:
        return [f"the oracle differs from the formula: {' '.join(str(error).split())[:200]}"]
    return []


def _dear(problem: Problem) -> list[str]:
    """Rule 5: workloads of the simulator's scale stay within a budget of work."""
    budgets = {"bytes": (problem.bytes, MOST_BYTES), "FLOPs": (problem.flops, MOST_FLOPS)}
    return [
        f"{dict(dims)} costs {cost(dims):,} {name}, at most {most:,} fit the simulator"
        for dims in problem.train[Scale.SIM]
        for name, (cost, most) in budgets.items()
        if cost(dims) > most
    ]


def _unsound(problem: Problem, workload: Workload, expected: Expected) -> list[str]:
    """Rule 1: no NaN in the oracle, the reference passes and gives the same again."""
    found = []
    if any(torch.isnan(out).any() for out in expected.oracle if out.is_floating_point()):
        found.append(f"the oracle has NaN on {workload}")
    verdict = compare(problem, expected, expected.reference)
    if not verdict.passed:
        found.append(f"the reference fails on {workload}: {verdict.message}")
    found += [f"{text} on {workload}" for text in _coarse(problem, expected)]
    first, second = (_answers(problem, expected, seed) for seed in (1, 2))
    if not same_bits(first, second):
        found.append(f"reference or oracle differ between two calls on {workload}")
    return found


def _answers(problem: Problem, expected: Expected, seed: int) -> tuple[torch.Tensor, ...]:
    """Both answers; whatever draws from the global generator depends on the seed."""
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(seed)
        inputs = expected.inputs
        return (*problem.reference(**copied(inputs)), *problem.oracle(**copied(inputs)))


def _coarse(problem: Problem, expected: Expected) -> list[str]:
    """Rule 1: the yardstick is no worse than some roundings, or it would excuse anything."""
    found = []
    for output, exact, ours in zip(
        problem.outputs, expected.oracle, expected.reference, strict=True
    ):
        if output.check is not Check.CLOSE or not exact.numel():
            continue
        finite = torch.isfinite(exact)
        error = torch.where(finite, ours.double() - exact, 0.0).abs().max()
        unit = torch.finfo(output.dtype).eps / 2
        roundings = float(error / (unit * torch.where(finite, exact, 0.0).abs().max() + 1e-30))
        if roundings > MOST_ROUNDINGS and float(error) > torch.finfo(output.dtype).tiny:
            found.append(f"the reference's {output.name!r} is {roundings:.0f} roundings off")
    return found


def _fragile(problem: Problem, cases: Mapping[Workload, Expected]) -> list[str]:
    """Rule 1 where no start kernel is run to show that honest ones pass: of generated problems."""
    if problem.folder is not None:
        return []
    blown_up = (w for w, expected in cases.items() if is_fragile(problem, expected))
    return [f"ill-conditioned: one unit in the last place decides on {w}" for w in blown_up][:1]


def _indifferent(problem: Problem, cases: Mapping[Workload, Expected], seed: int) -> list[str]:
    """Rule 3: each tensor that differs from seed to seed changes some output on some workload."""
    deaf: set[str] = set()
    heard: set[str] = set()
    for workload, expected in cases.items():
        other = make_inputs(problem, workload, seed + 1)
        for name, value in expected.inputs.items():
            if name in heard or not isinstance(value, torch.Tensor):
                continue
            if not same_bits((value,), (other[name],)):  # type: ignore[arg-type]
                (heard if _matters(problem, expected, name, other[name]) else deaf).add(name)
    return [f"input {name!r} changes no output" for name in sorted(deaf - heard)]


def _matters(problem: Problem, expected: Expected, name: str, value: Value) -> bool:
    try:
        with torch.no_grad():
            found = problem.oracle(**copied({**expected.inputs, name: value}))
    except (IndexError, RuntimeError):
        return True  # the other inputs do not fit this one: it is used
    pairs = zip(found, problem.outputs, strict=True)
    rounded = tuple(out.to(output.dtype) for out, output in pairs)
    return not compare(problem, expected, rounded).passed


def _try(control: Control, problem: Problem, cases: Mapping[Workload, Expected], seed: int) -> str:
    """Rule 2: what a control comes to over the workloads; train ones are tried until it fails."""
    seen: set[str] = set()
    caught: set[str] = set()
    reason, complete = "", False
    for workload, expected in cases.items():
        if workload.split is Split.TRAIN and complete:
            break
        wrong = control(Case(problem, workload, seed))
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
