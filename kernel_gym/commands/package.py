"""`kernel-gym package`: make a package of a kernel that passed, or verify one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from kernel_gym.commands.common import (
    FAILED,
    DeviceOption,
    JsonOption,
    SeedOption,
    console,
    messages,
    one_line_errors,
    print_json,
)

if TYPE_CHECKING:
    from kernel_gym.packages import Evidence
    from kernel_gym.records import Evaluation
    from kernel_gym.tasks import Task


class _DefaultGroup(TyperGroup):
    """A group whose first argument is a command, or else belongs to the command `make`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] != "--help":
            args = ["make", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_DefaultGroup,
    no_args_is_help=True,
    help="Make an installable package of a kernel that passed, or verify one.\n\n"
    "Example: kernel-gym package runs/demo --task torch2triton/softmax --out softmax-package",
)


@app.command()
def make(
    path: Annotated[
        Path, typer.Argument(metavar="RUN|FILE", help="A run folder, or a source.", exists=True)
    ],
    task_id: Annotated[str, typer.Option("--task", "-t", help="The task.")],
    out: Annotated[Path, typer.Option(help="The folder of the package: new or empty.")],
    backward: Annotated[
        Path | None,
        typer.Option(help="A package whose kernel computes the gradient.", exists=True),
    ] = None,
    device: DeviceOption = "auto",
    seed: SeedOption = None,
    json: JsonOption = False,
) -> None:
    """Make a package of a run's best kernel for a task, or of a source, which is judged first.

    The task's baseline must be PyTorch, which the package falls back to. A run's kernel for another
    task of the same problem is judged again.

    Example: kernel-gym package my_softmax.py --task torch2triton/softmax --out softmax-package
    """
    from kernel_gym.devices import describe
    from kernel_gym.packages import write_package
    from kernel_gym.packages.evidence import evidence_of, require_torch
    from kernel_gym.packages.verify import packaged_kernel
    from kernel_gym.tasks import get_task

    with one_line_errors():
        task = get_task(task_id)
        require_torch(task)
        if path.is_dir() and (best := _best(path, task)):
            evaluation, source, judge = best
        elif path.is_dir():
            source, judge = _best_of_problem(path, task)
            evaluation = _judged(task, source, judge, seed)
        else:
            source = path.read_text(encoding="utf-8", errors="replace")
            evaluation, judge = _judged(task, source, device, seed), device
        architecture = describe(judge).spec.arch
        evidence = evidence_of(task, evaluation, source, judge, architecture)
        inner = ""
        if backward is not None:
            inner, gradient = packaged_kernel(backward)
            evidence = evidence.model_copy(update={"backward": gradient})
        complete = write_package(out, task, source, evidence, inner)
    _show(out, complete, json)


def _best(folder: Path, task: Task) -> tuple[Evaluation, str, str] | None:
    """Returns the record and the source of a run's best kernel, and the device that judged it."""
    from kernel_gym.episodes.history import best_turn
    from kernel_gym.storage.run_store import RunStore

    store = RunStore(folder)
    turn = best_turn(store.turns(task.id))
    return (turn.evaluation, store.source(turn), store.config.device) if turn else None


def _best_of_problem(folder: Path, task: Task) -> tuple[str, str]:
    """Returns a run's best kernel for another task of the problem, and the device."""
    from kernel_gym.packages import PackageError
    from kernel_gym.tasks.task import Mode, Task

    for mode in Mode:
        other = Task(task.problem, mode)
        if other.written_in == task.written_in and (best := _best(folder, other)):
            messages.print(f"judging the kernel of {other.id} again, as {task.id}")
            return best[1], best[2]
    raise PackageError(f"{folder}: no kernel for {task.id} passed, expected one")


def _judged(task: Task, source: str, device: str, seed: int | None) -> Evaluation:
    from kernel_gym.evaluator import Evaluator

    with (
        Evaluator(device=device, seed=seed) as evaluator,
        messages.status(f"evaluating on {device}"),
    ):
        return evaluator.evaluate(task, source)


def _show(out: Path, evidence: Evidence, json: bool) -> None:
    from kernel_gym.packages.engines import described

    if json:
        print_json({"folder": str(out), "evidence": evidence.model_dump(mode="json")})
        return
    console.print(
        f"{out}: {evidence.task} on {evidence.device}, {evidence.speedup:.2f} times its baseline "
        f"on train workloads, {evidence.unseen_speedup:.2f} on unseen ones"
    )
    console.print(described(evidence.task.split("/")[1]), markup=False, highlight=False)
    console.print(f"install it: pip install {out}/dist/*.whl", markup=False, highlight=False)


@app.command()
def verify(
    folder: Annotated[Path, typer.Argument(help="A package.", exists=True, file_okay=False)],
    device: Annotated[
        str, typer.Option("--device", "-d", help="A device; by default the evidence's.")
    ] = "",
    seed: SeedOption = None,
    json: JsonOption = False,
) -> None:
    """Check a package's files and judge its kernel again. Exit code 1 if it is not borne out.

    Example: kernel-gym package verify softmax-package
    """
    from kernel_gym.packages import verify as verify_package

    with one_line_errors(), messages.status("evaluating"):
        verification = verify_package(folder, device, seed)
    if json:
        print_json(
            {
                "differences": list(verification.differences),
                "statements": list(verification.statements),
                "evidence": verification.evidence.model_dump(mode="json"),
                "speedup": verification.evaluation.speedup,
                "unseen_speedup": verification.evaluation.unseen_speedup,
            }
        )
    elif not verification.differences:
        console.print(f"{folder}: borne out by a new verdict on {verification.evaluation.device}")
        statements = "; ".join(verification.statements)
        console.print(f"not judged again: {statements}", markup=False, highlight=False)
    for difference in () if json else verification.differences:
        console.print(f"{folder}: {difference}", markup=False, highlight=False)
    if verification.differences:
        raise typer.Exit(FAILED)
