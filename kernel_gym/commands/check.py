"""`kernel-gym check`: evaluate one source file on one task."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernel_gym.commands.common import (
    FAILED,
    DeviceOption,
    JsonOption,
    RewardOption,
    SecretOption,
    SeedOption,
    TaskArgument,
    console,
    messages,
    note,
    one_line_errors,
    print_json,
    styled_outcome,
)

if TYPE_CHECKING:
    from kernel_gym.records import Evaluation
    from kernel_gym.rewards import RewardResult
    from kernel_gym.tasks import Task


def check(
    task_id: TaskArgument,
    file: Annotated[Path, typer.Argument(help="The source.", exists=True, dir_okay=False)],
    device: DeviceOption = "auto",
    seed: SeedOption = None,
    secret: SecretOption = None,
    reward: RewardOption = "kernel-opt",
    reveal: Annotated[
        bool,
        typer.Option("--reveal", help="Show the hidden workload that fails: for people alone."),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Evaluate one source file on one task. Exit code 0 when it passes, 1 when it does not.

    A seed draws the same on every machine, unless a run's secret is given as well. Adversarial and
    unseen workloads are withheld, as they are from a policy, unless --reveal is given: an author
    that knows their sizes can write a kernel for them alone.

    Example: kernel-gym check triton2triton/softmax my_softmax.py --device sim:gfx942
    """
    from kernel_gym.sandbox.spawn import shared_template

    template = shared_template()  # it loads its libraries while this process loads those it needs
    gc.disable()  # searching what imports have made takes a tenth of their time
    try:
        from kernel_gym.evaluator import Evaluator
        from kernel_gym.records import Outcome
        from kernel_gym.rewards import Context, get_reward
        from kernel_gym.storage.secret import PUBLIC, read_secret
        from kernel_gym.tasks import get_task

        with one_line_errors():
            source = file.read_text(encoding="utf-8", errors="replace")
            task, scored = get_task(task_id), get_reward(reward)
            draws = PUBLIC if secret is None else read_secret(secret)
            evaluator = Evaluator(device=device, seed=seed, secret=draws, hurry=True)
    except BaseException:  # raised again below
        template.close()
        raise
    finally:
        gc.freeze()
        gc.enable()
    with evaluator, one_line_errors(), messages.status(f"evaluating on {device}"):
        evaluation = evaluator.evaluate(task, source)
    shown = evaluation if reveal else _without_hidden(evaluation, seed)
    hidden = _revealed(evaluation) if reveal else ""
    _show(task, shown, scored(evaluation, Context().of(source)), hidden, json)
    if evaluation.outcome is not Outcome.PASSED:
        raise typer.Exit(FAILED)


def _without_hidden(evaluation: Evaluation, seed: int | None) -> Evaluation:
    """Returns the record for display, without a random seed: it would reveal hidden workloads."""
    from kernel_gym.hidden import without_hidden

    return without_hidden(evaluation).model_copy(update={"seed": seed})


def _revealed(evaluation: Evaluation) -> str:
    from kernel_gym.hidden import revealed

    return revealed(evaluation)


def _show(
    task: Task, evaluation: Evaluation, result: RewardResult, secret: str, json: bool
) -> None:
    from kernel_gym.feedback import feedback
    from kernel_gym.formatting import calibration
    from kernel_gym.records import Outcome

    text = feedback(task, evaluation)
    if evaluation.outcome is Outcome.INFRA:
        note(f"infra: {evaluation.message}")
    if json:
        data = evaluation.model_dump(mode="json")
        print_json({"evaluation": data, "reward": result.value, "terms": dict(result.terms)})
        return
    reward = "masked" if result.value is None else f"{result.value:.3f}"
    console.print(f"{task.id} on {evaluation.device}: {styled_outcome(evaluation.outcome)}")
    console.print(f"reward {reward}", highlight=False)
    console.print()
    console.print(text, markup=False, highlight=False, soft_wrap=True)
    if lines := calibration(evaluation):
        console.print("\n" + "\n".join(lines), markup=False, highlight=False, soft_wrap=True)
    if secret:
        console.print(f"\n{secret}", markup=False, highlight=False, soft_wrap=True)
