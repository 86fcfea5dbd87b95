"""Judges a claim: controls of its inputs, all gates for its kernel, comparisons of time."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kernel_gym.admission.values import PASSES, check_values
from kernel_gym.analysis.summary import geometric_mean
from kernel_gym.evaluator import Evaluator
from kernel_gym.feedback import HEADLINE
from kernel_gym.formatting import describe, factor
from kernel_gym.hidden import revealed
from kernel_gym.judge.timing.torch_model import FORMULA_FACTOR
from kernel_gym.records import Clock, Evaluation, Outcome, source_digest
from kernel_gym.referee.claim import Claim
from kernel_gym.referee.domain import OWN, own_distributions
from kernel_gym.tasks.problem import Scale
from kernel_gym.tasks.workload import Split

CONTROLS = (
    "no-op launch",
    "zeros",
    "constant",
    "mean",
    "stale output",
    "last tile unwritten",
    "half the rows skipped",
)
"""Wrong answers that the inputs of a claim must distinguish from right ones."""


class Ruling(StrEnum):
    """The answer of the referee."""

    HOLDS = "holds"
    FAILS = "does not hold"
    OPEN = "cannot be judged"


@dataclass(frozen=True)
class CardStatement:
    """One statement of the card.

    Attributes:
        name: What is stated.
        holds: Whether it holds; None if the device cannot tell.
        text: The evidence in a sentence.
    """

    name: str
    holds: bool | None
    text: str


@dataclass(frozen=True)
class Card:
    """The evidence on a claim.

    Attributes:
        ruling: The answer.
        checks: The statements, in the order in which they were tried.
        evaluations: The whole records by name: `baseline`, `kernel`, `against_torch`.
        claim: The claim.
        device: The device's full name.
        clock: Whether times are "measured" or "modelled".
        digests: SHA-256 of kernel and baseline.
    """

    ruling: Ruling
    checks: tuple[CardStatement, ...]
    evaluations: dict[str, Evaluation]
    claim: Claim
    device: str
    clock: str
    digests: dict[str, str]

    @property
    def reasons(self) -> list[str]:
        """Why the claim does not hold or cannot be judged."""
        why = False if any(check.holds is False for check in self.checks) else None
        return [f"{check.name}: {check.text}" for check in self.checks if check.holds is why]


def judge(claim: Claim, evaluator: Evaluator) -> Card:
    """Judges a claim.

    Args:
        claim: The claim.
        evaluator: Evaluates the kernels. Without a seed nobody knows the data and the sizes.

    Raises:
        UnfitDevice: The device lacks instructions for the claim's types.
    """
    description = evaluator.device.description
    checks = [_domain(claim)]
    if checks[-1].holds:
        checks.append(_controls(claim, description.scale))
    evaluations: dict[str, Evaluation] = {}
    ruling = Ruling.OPEN
    if checks[-1].holds:
        checks += _baseline(claim, evaluator, evaluations)
        if all(check.holds is not False for check in checks):
            checks += _kernel(claim, evaluator, evaluations)
            ruling = _ruling(checks, evaluations)
    digests = {"kernel": source_digest(claim.kernel)}
    digests |= {"baseline": source_digest(claim.baseline)} if claim.baseline else {}
    return Card(
        ruling,
        tuple(checks),
        evaluations,
        claim,
        description.name,
        str(description.clock),
        digests,
    )


def _domain(claim: Claim) -> CardStatement:
    """Adds the referee's own distributions to those of the claim, where there is an answer."""
    name = "the reference has answers on data that the claim does not choose"
    try:
        own = own_distributions(claim.problem)
    except Exception as error:  # the author of the claim may have written all of it
        return CardStatement(name, False, f"the reference fails: {type(error).__name__}: {error}")
    if not own:
        return CardStatement(name, False, f"it has none on any of {', '.join(OWN)}")
    claim.problem.judge_on(own)
    left_out = [distribution for distribution in OWN if distribution not in own]
    text = f"the kernel is judged on {', '.join(claim.problem.distributions)}"
    text += f"; the reference has no answer on {', '.join(left_out)}" if left_out else ""
    return CardStatement(name, True, text)


def _controls(claim: Claim, scale: Scale) -> CardStatement:
    """Whether wrong answers are refused on the claim's inputs, and PyTorch can be timed."""
    name = "the inputs distinguish right from wrong answers"
    try:
        report = check_values(claim.problem, Scale.SIM, 0)
        if scale is Scale.FULL:  # a GPU runs the reference, for which it must be one text
            claim.problem.reference_source()
    except Exception as error:  # the author of the claim may have written all of it
        return CardStatement(name, False, f"the reference fails: {type(error).__name__}: {error}")
    weak = [c for c in CONTROLS if report.controls[c].startswith(PASSES)]
    broken = [refusal.text for refusal in report.refusals if refusal.without_answer]
    if broken:
        return CardStatement(name, False, broken[0])
    if weak:
        return CardStatement(name, False, f"these wrong answers would pass: {', '.join(weak)}")
    return CardStatement(name, True, f"refused on them: {', '.join(CONTROLS)}")


def _baseline(
    claim: Claim, evaluator: Evaluator, kept: dict[str, Evaluation]
) -> list[CardStatement]:
    if claim.baseline is None:
        return []
    evaluation = evaluator.evaluate(claim.against_torch, claim.baseline)
    kept["baseline"] = evaluation
    name = "the baseline is right"
    if evaluation.outcome is not Outcome.PASSED:
        return [CardStatement(name, False, _why(evaluation))]
    text = f"{factor(evaluation.speedup)} of eager PyTorch's speed on the claimed shapes"
    return [CardStatement(name, True, text)]


def _kernel(claim: Claim, evaluator: Evaluator, kept: dict[str, Evaluation]) -> list[CardStatement]:
    name = "the kernel is right on fresh data, odd layouts and derived shapes"
    task = claim.against_baseline
    evaluation = evaluator.evaluate(task or claim.against_torch, claim.kernel)
    kept["kernel"] = evaluation
    if evaluation.outcome is not Outcome.PASSED:
        return [_beyond(claim, evaluation) or CardStatement(name, False, _why(evaluation))]
    checks = [CardStatement(name, True, f"{len(evaluation.workloads)} workloads")]
    other = "the baseline" if task else "eager PyTorch"
    stated = claim.statement.claimed_speedup
    modelled = evaluator.device.description.clock is Clock.MODELLED
    torch_error = FORMULA_FACTOR if modelled else 1.0
    error = 1.0 if task else torch_error
    checks += _faster(evaluation, other, stated, error)
    if task is not None:
        against = evaluator.evaluate(claim.against_torch, claim.kernel)
        kept["against_torch"] = against
        checks.append(_against_torch(against, torch_error))
    if stated is not None:
        reached = _without_limits(evaluation)
        text = f"claimed {factor(stated)}, found {factor(reached)}"
        checks.append(
            _told(
                "the claimed factor is reached",
                text,
                reached >= CLAIM_SHARE * stated,
                reached * error >= CLAIM_SHARE * stated,
            )
        )
    return checks


CLAIM_SHARE = 0.95
"""A claimed factor counts as reached from this share of it on."""
DERIVED_SHARE = 0.5
"""The share of the logarithm of the claimed gain that must remain on derived shapes. A kernel that
is faster on its author's shapes alone would pass with a gain that no user sees."""


def _without_limits(evaluation: Evaluation) -> float:
    """The mean gain on the claimed shapes, which a speedup would cut at ten."""
    ratios = (w.speedup for w in evaluation.by_split(Split.TRAIN) if w.timed)
    return geometric_mean(ratios) or 0.0


def _told(name: str, text: str, holds: bool, explained: bool) -> CardStatement:
    """A statement on a time; open if it does not hold, but the error of the clocks explains it."""
    if holds or not explained:
        return CardStatement(name, holds, text)
    error = f"the formula for eager PyTorch may be wrong by {factor(FORMULA_FACTOR)}"
    return CardStatement(name, None, f"{text}; {error}, which explains the difference")


def _beyond(claim: Claim, evaluation: Evaluation) -> CardStatement | None:
    """The statement on a kernel that fails on data that its author has left out."""
    stated = claim.statement.distributions
    failed = next((w for w in evaluation.workloads if not w.passed), None)
    if failed is None or failed.distribution in stated:
        return None
    name = f"it is right beyond the distributions that the claim states ({', '.join(stated)})"
    return CardStatement(name, False, f"not on {failed.distribution}: {_why(evaluation)}")


def _faster(
    evaluation: Evaluation, other: str, stated: float | None, error: float = 1.0
) -> list[CardStatement]:
    """Whether the kernel is faster for certain, on the claimed shapes and on derived ones.

    On derived shapes a part of the gain must remain: of the stated one, or of that on the claimed
    shapes where the claim states none. A miss is open if `error`, the factor by which two clocks
    may differ, explains it: on derived shapes it must explain that the whole gain is not there.
    """
    gain = max(1.0, (evaluation.speedup_low if stated is None else stated) or 1.0)
    rows = []
    for name, split, low, least, whole in (
        ("claimed", Split.TRAIN, evaluation.speedup_low, 1.0, 1.0),
        ("derived", Split.UNSEEN, evaluation.unseen_speedup_low, gain**DERIVED_SHARE, gain),
    ):
        each = [w for w in evaluation.by_split(split) if w.speedup is not None]
        worst = min(each, key=lambda w: w.speedup or 0.0, default=None)
        text = f"{factor(low)} of {other}'s speed at least"
        if worst is not None:
            text += f"; the worst of {len(each)}: {factor(worst.speedup)} on {describe(worst)}"
        text += f"; at least {factor(least)} is needed" if least > 1.0 else ""
        holds = low is not None and low > 1.0 and low >= least
        explained = error > 1.0 and low is not None and low * error >= whole
        rows.append(_told(f"it is faster than {other} on {name} shapes", text, holds, explained))
    return rows


def _against_torch(evaluation: Evaluation, error: float = 1.0) -> CardStatement:
    """Whether the kernel is faster than PyTorch: beside a slow baseline every kernel is fast."""
    name = "it is faster than eager PyTorch, so that the baseline was not slow"
    if evaluation.outcome is not Outcome.PASSED:
        return CardStatement(name, False, _why(evaluation))
    low = evaluation.speedup_low
    text = f"{factor(low)} of eager PyTorch's speed at least, on the claimed shapes"
    explained = error > 1.0 and low is not None and low * error >= 1.0
    return _told(name, text, low is not None and low > 1.0, explained)


def _why(evaluation: Evaluation) -> str:
    text = HEADLINE[evaluation.outcome]
    detail = revealed(evaluation).replace("\n", "; ") or evaluation.message
    return f"{text}: {detail}" if detail else text


def _ruling(checks: list[CardStatement], evaluations: dict[str, Evaluation]) -> Ruling:
    if any(e.outcome is Outcome.INFRA for e in evaluations.values()):
        return Ruling.OPEN
    if any(check.holds is False for check in checks):
        return Ruling.FAILS
    return Ruling.HOLDS if all(check.holds for check in checks) else Ruling.OPEN
