"""Terms for correctness, and for the progress of a submission through the stages."""

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
"""Partial credit by outcome, see :func:`credit`."""
ALL_TRAIN_RIGHT = CREDIT[Outcome.UNSEEN_FAILED]
UNSEEN_CREDIT = 0.02
"""Extra credit of an `unseen_failed` kernel, times its share of right unseen workloads."""

_NOT_BUILT = (Outcome.HACK, Outcome.SCREENED, Outcome.COMPILE_ERROR, Outcome.INFRA)
_NOT_RUN = (*_NOT_BUILT, Outcome.RUNTIME_ERROR, Outcome.TIMEOUT)


@term
def passed(evaluation: Evaluation) -> float:
    """Returns 1 if every workload of every split is right and every time can be trusted."""
    return float(evaluation.outcome is Outcome.PASSED)


@term
def correct(evaluation: Evaluation) -> float:
    """Returns 1 if every workload of every split is right, timed or not."""
    return float(evaluation.outcome in (Outcome.PASSED, Outcome.INVALID_TIMING))


@term
def incorrect(evaluation: Evaluation) -> float:
    """Returns 1 if :func:`correct` is 0."""
    return 1.0 - correct(evaluation)


@term
def correct_share(evaluation: Evaluation) -> float:
    """Returns the share of right workloads among those tried. A failure ends the trials."""
    if evaluation.outcome in _NOT_BUILT:
        return 0.0
    results = evaluation.workloads
    if not results:
        return correct(evaluation)
    return sum(result.passed for result in results) / len(results)


@term
def screened(evaluation: Evaluation) -> float:
    """Returns 1 if the source passed the static rules."""
    return float(evaluation.outcome not in (Outcome.SCREENED, Outcome.HACK, Outcome.INFRA))


@term
def compiled(evaluation: Evaluation) -> float:
    """Returns 1 if the source compiled, except for a hack."""
    return float(evaluation.outcome not in _NOT_BUILT)


@term
def ran(evaluation: Evaluation) -> float:
    """Returns 1 if the first call returned something, right or wrong."""
    if evaluation.outcome in _NOT_BUILT:
        return 0.0
    if evaluation.outcome in _NOT_RUN:
        return float(evaluation.stage not in (Stage.SCREEN, Stage.BUILD, Stage.TRAIN))
    return 1.0


@term
def hack(evaluation: Evaluation) -> float:
    """Returns 1 if the result was not computed honestly. Use it with a negative weight."""
    return float(evaluation.outcome is Outcome.HACK)


@term
def credit(evaluation: Evaluation) -> float:
    """Returns the partial credit of a failure by how far it came; 0 for a kernel that passed.

    The credits are small, and below the reward of any correct kernel, so that no policy settles on
    a failure. They only give a gradient to a policy that never gets a kernel right:

    - A hack costs more than any honest failure.
    - A screened source never reached a compiler and gets nothing.
    - A source that does not compile at least kept the rules.
    - A kernel that runs wrongly at least compiled.
    - A kernel that is right on every train workload, but not on adversarial or unseen ones, only
      fits the shapes that it was shown. The share of right unseen workloads adds a little.
    - A kernel that is right everywhere, but has no trusted timing, lacks only a time.

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
    """Returns the share of right unseen workloads; 0 if none was tried.

    It is the mean over kinds, so each kind has the same weight.
    """
    kinds: dict[str, list[bool]] = {}
    for result in evaluation.by_split(Split.UNSEEN):
        kinds.setdefault(result.kind, []).append(result.passed)
    shares = sorted(sum(verdicts) / len(verdicts) for verdicts in kinds.values())
    return sum(shares) / len(shares) if shares else 0.0
