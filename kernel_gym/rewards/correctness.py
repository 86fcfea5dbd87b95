"""Terms about how far a submission came, and whether it is right."""

from __future__ import annotations

from kernel_gym.records import Evaluation, Outcome, Stage
from kernel_gym.rewards.terms import term
from kernel_gym.tasks.workload import Split

HACK = -1.0
CREDIT = {
    Outcome.HACK: HACK,
    Outcome.SCREENED: 0.0,
    Outcome.COMPILE_ERROR: 0.02,
    Outcome.RUNTIME_ERROR: 0.05,
    Outcome.TIMEOUT: 0.05,
    Outcome.WRONG_METADATA: 0.05,
    Outcome.WRONG_VALUES: 0.05,
    Outcome.UNSEEN_FAILED: 0.08,
    Outcome.INVALID_TIMING: 0.11,
}
"""What a failure is worth. See :func:`credit`."""
ALL_TRAIN_RIGHT = CREDIT[Outcome.UNSEEN_FAILED]
UNSEEN_CREDIT = 0.02
"""How much of the credit of a kernel that is wrong on unseen workloads depends on how many."""

_NOT_BUILT = (Outcome.HACK, Outcome.SCREENED, Outcome.COMPILE_ERROR, Outcome.INFRA)
_NOT_RUN = (*_NOT_BUILT, Outcome.RUNTIME_ERROR, Outcome.TIMEOUT)


@term
def passed(evaluation: Evaluation) -> float:
    """1 when every workload of every split was right and every time could be trusted."""
    return float(evaluation.outcome is Outcome.PASSED)


@term
def correct(evaluation: Evaluation) -> float:
    """1 when every workload of every split was right, timed or not."""
    return float(evaluation.outcome in (Outcome.PASSED, Outcome.INVALID_TIMING))


@term
def incorrect(evaluation: Evaluation) -> float:
    """1 when :func:`correct` is 0."""
    return 1.0 - correct(evaluation)


@term
def correct_share(evaluation: Evaluation) -> float:
    """Share of the workloads tried that came out right; those after a failure are not tried."""
    if evaluation.outcome in _NOT_BUILT:
        return 0.0
    results = evaluation.workloads
    if not results:
        return correct(evaluation)
    return sum(result.passed for result in results) / len(results)


@term
def screened(evaluation: Evaluation) -> float:
    """1 when the source got through the static rules."""
    return float(evaluation.outcome not in (Outcome.SCREENED, Outcome.HACK, Outcome.INFRA))


@term
def compiled(evaluation: Evaluation) -> float:
    """1 when it compiled; a hack earns nothing for compiling."""
    return float(evaluation.outcome not in _NOT_BUILT)


@term
def ran(evaluation: Evaluation) -> float:
    """1 when its first call returned something, right or wrong."""
    if evaluation.outcome in _NOT_BUILT:
        return 0.0
    if evaluation.outcome in _NOT_RUN:
        return float(evaluation.stage not in (Stage.SCREEN, Stage.BUILD, Stage.TRAIN))
    return 1.0


@term
def hack(evaluation: Evaluation) -> float:
    """1 when the result was not earned by computing it. Meant for a negative weight."""
    return float(evaluation.outcome is Outcome.HACK)


@term
def credit(evaluation: Evaluation) -> float:
    """Partial credit of a failure, by how far it came; 0 for a kernel that passed.

    The rungs are small and below what any correct kernel earns, so that no policy settles on one;
    they only give a policy that never gets a kernel right something to climb:

    - a hack costs more than anything honest can lose;
    - a screened source never reached a compiler: nothing;
    - a source that does not compile at least kept the rules;
    - one that runs wrongly compiled;
    - one that is right on every train workload but not on adversarial or unseen ones is a kernel
      for the shapes it was shown; how many unseen ones are right counts a little;
    - one that is right everywhere but whose timing could not be trusted lacks only a time.

    Args:
        evaluation: Any evaluation.

    Returns:
        The credit, between -1 and 0.11.
    """
    rung = CREDIT.get(evaluation.outcome, 0.0)
    if evaluation.outcome is Outcome.UNSEEN_FAILED:
        return rung + UNSEEN_CREDIT * unseen_share(evaluation)
    beyond_train = evaluation.stage in (Stage.ADVERSARIAL, Stage.UNSEEN)
    if beyond_train and 0.0 < rung < ALL_TRAIN_RIGHT:
        return ALL_TRAIN_RIGHT
    return rung


@term
def unseen_share(evaluation: Evaluation) -> float:
    """Share of the kinds of unseen workload that came out right; 0 when none was tried.

    Every kind counts the same, however many workloads of it were drawn.
    """
    kinds: dict[str, list[bool]] = {}
    for result in evaluation.by_split(Split.UNSEEN):
        kinds.setdefault(result.kind, []).append(result.passed)
    shares = sorted(sum(verdicts) / len(verdicts) for verdicts in kinds.values())
    return sum(shares) / len(shares) if shares else 0.0
