"""What of an evaluation is kept from whoever writes kernels, and what a person may ask to see.

Adversarial and unseen workloads test a kernel on sizes that its author does not know. An author
that learns them can write a kernel that is right on them and on no others.
"""

from __future__ import annotations

from kernel_gym.feedback import hidden_failure
from kernel_gym.formatting import describe
from kernel_gym.records import Evaluation, Stage, WorkloadResult
from kernel_gym.tasks.workload import Layout, Split

WITHHELD = "withheld"
"""Stands for the distribution and the message of a hidden workload."""


def without_hidden(evaluation: Evaluation) -> Evaluation:
    """The evaluation without what identifies adversarial and unseen workloads.

    Args:
        evaluation: The whole record.

    Returns:
        A record in which those workloads have no dimensions, no distribution, layout, message and
        element. Whether each is right and how fast is left, and how the evaluation ended.
    """
    workloads = tuple(map(_withheld, evaluation.workloads))
    update: dict[str, object] = {"workloads": workloads}
    if evaluation.stage in (Stage.ADVERSARIAL, Stage.UNSEEN):
        update |= {"message": hidden_failure(evaluation), "detail": ""}
    elif evaluation.stage is Stage.TIME:
        update |= {"message": WITHHELD if evaluation.message else "", "detail": ""}
    return evaluation.model_copy(update=update)


def _withheld(result: WorkloadResult) -> WorkloadResult:
    """A workload that may be shown, or what may be shown of it."""
    if result.split is Split.TRAIN:
        return result
    return WorkloadResult(
        dims={},
        split=result.split,
        kind=result.kind,
        distribution=WITHHELD,
        layout=Layout.CONTIGUOUS,
        passed=result.passed,
        message="" if result.passed else WITHHELD,
        worst_error=None,
        speedup=result.speedup,
        speedup_low=result.speedup_low,
    )


def revealed(evaluation: Evaluation) -> str:
    """The hidden workload that failed, for a person who looks for the mistake.

    Args:
        evaluation: The whole record.

    Returns:
        Lines of text: its sizes, the message, and the worst element; "" where none failed.
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
