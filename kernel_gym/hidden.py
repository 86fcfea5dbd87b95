"""Removes from an evaluation what the author of a kernel must not see.

Adversarial and unseen workloads test a kernel on sizes that its author does not know. An author who
knows them could write a kernel that is right on these sizes only.
"""

from __future__ import annotations

from kernel_gym.feedback import hidden_failure
from kernel_gym.formatting import describe
from kernel_gym.records import Evaluation, Stage, WorkloadResult
from kernel_gym.tasks.workload import Layout, Split

WITHHELD = "withheld"
"""Replaces the distribution and the message of a hidden workload."""


def without_hidden(evaluation: Evaluation) -> Evaluation:
    """Returns an evaluation without the data that identify adversarial and unseen workloads.

    Args:
        evaluation: The complete record.

    Returns:
        A record in which these workloads have no dimensions, distribution, layout, message or
        element. It still has their pass or fail, their speedups, and the outcome.
    """
    workloads = tuple(map(_withheld, evaluation.workloads))
    update: dict[str, object] = {"workloads": workloads}
    if evaluation.stage in (Stage.ADVERSARIAL, Stage.UNSEEN):
        update |= {"message": hidden_failure(evaluation), "detail": ""}
    elif evaluation.stage is Stage.TIME:
        update |= {"message": WITHHELD if evaluation.message else "", "detail": ""}
    return evaluation.model_copy(update=update)


def _withheld(result: WorkloadResult) -> WorkloadResult:
    """Returns a train workload unchanged, and another one without its hidden data."""
    if result.split is Split.TRAIN:
        return result
    return WorkloadResult(
        dims={},
        split=result.split,
        kind=result.kind,
        distribution=WITHHELD,
        layout=Layout.CONTIGUOUS,
        timed=result.timed,
        passed=result.passed,
        message="" if result.passed else WITHHELD,
        worst_error=None,
        speedup=result.speedup,
        speedup_low=result.speedup_low,
    )


def without_hidden_times(evaluation: Evaluation) -> Evaluation:
    """Returns an evaluation without hidden data, and without the speedups of hidden workloads.

    A kernel can encode the sizes of a workload in the time that it takes. So a client that sends
    kernels and reads records must not see these speedups. That over all of them is left. Rewards
    that need single ones are computed from the complete record.

    Args:
        evaluation: The complete record.
    """
    shown = without_hidden(evaluation)
    times = {"speedup": None, "speedup_low": None}
    workloads = (
        result if result.split is Split.TRAIN else result.model_copy(update=times)
        for result in shown.workloads
    )
    return shown.model_copy(update={"workloads": tuple(workloads)})


def revealed(evaluation: Evaluation) -> str:
    """Describes the hidden workload that failed, for a person who debugs the kernel.

    Args:
        evaluation: The complete record.

    Returns:
        Lines of text: sizes, message and worst element; "" if no hidden workload failed.
    """
    failed = next(
        (w for w in evaluation.workloads if not w.passed and w.split is not Split.TRAIN), None
    )
    if failed is None:
        hidden = evaluation.stage in (Stage.ADVERSARIAL, Stage.UNSEEN, Stage.TIME)
        return evaluation.message if hidden else ""
    lines = [f"Failed on the {failed.split} workload {describe(failed)}", failed.message]
    if element := failed.element:
        index = ", ".join(map(str, element.index))
        lines.append(
            f"{element.output}[{index}]: expected {element.expected:.8g}, "
            f"found {element.found:.8g}, allowed {element.tolerance:.3g} off"
        )
    return "\n".join(line for line in (*lines, evaluation.detail.strip()) if line)
