"""`kernel-gym corpus`: pairs of graphs and kernels for training."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernel_gym.commands.common import messages, note, one_line_errors

if TYPE_CHECKING:
    from kernel_gym.episodes.episode import Prompt
    from kernel_gym.executors import Executor
    from kernel_gym.training.inductor_corpus import GraphTrial


def corpus(
    folder: Annotated[Path, typer.Argument(metavar="OUT", help="A folder for the dataset.")],
    pairs: Annotated[int, typer.Option(min=0, help="Training pairs from templates.")] = 20_000,
    held_out: Annotated[int, typer.Option(min=2, help="Held-out graphs.")] = 64,
    max_depth: Annotated[int, typer.Option(min=2, max=6, help="Most operators of a graph.")] = 4,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the training pairs.")] = 0,
    judge: Annotated[
        int, typer.Option(min=0, help="Training pairs to evaluate; with any, all held-out ones.")
    ] = 0,
    inductor: Annotated[
        int,
        typer.Option(min=0, help="Training graphs to pair with TorchInductor's kernel, if right."),
    ] = 0,
    device: Annotated[
        str, typer.Option("--device", "-d", help="The device that evaluates.")
    ] = "sim:gfx942",
    workers: Annotated[int, typer.Option(min=1, help="Parallel evaluations.")] = 2,
) -> None:
    """Write a dataset of generated graphs and right Triton kernels, in TRL's format with a card.

    The same command continues with graphs for TorchInductor that it has not tried yet.

    Example: kernel-gym corpus runs/corpus --pairs 20000 --judge 100
    """
    from kernel_gym.episodes.conversation import graph_prompt
    from kernel_gym.executors import make_executor
    from kernel_gym.training.corpus_export import JudgedRows, judge_rows, write_dataset
    from kernel_gym.training.graph_corpus import draw_pairs, graph_of, held_out_tasks, pair_of
    from kernel_gym.training.graph_kernels import default_plan

    if not pairs and not inductor:
        raise typer.BadParameter("expected --pairs or --inductor, or both, above 0")
    with one_line_errors():
        prompt = graph_prompt(device)
        tasks = held_out_tasks(held_out, max_depth)
        new = JudgedRows([pair_of(t, default_plan(graph_of(t)), prompt) for t in tasks], 0, 0)
        train = JudgedRows(draw_pairs(pairs, max_depth, seed, prompt), 0, 0)
        trials: list[GraphTrial] = []
        with ExitStack() as stack:
            if judge or inductor:
                executor = stack.enter_context(
                    make_executor("local", device=device, seed=seed, workers=workers)
                )
            if judge:
                new = judge_rows(new.rows, len(new.rows), executor)
                train = judge_rows(train.rows, judge, executor)
            if inductor:
                trials = _trials(inductor, max_depth, prompt, executor, folder)
        command = (
            f"kernel-gym corpus OUT --pairs {pairs} --held-out {held_out} --max-depth {max_depth} "
            f"--seed {seed} --judge {judge} --inductor {inductor} --device {device}"
        )
        write_dataset(folder, train, new, command, device, trials)
    for name, split in (("training", train), ("held-out", new)):
        counts = f"{split.right} of {split.judged} judged are right"
        note(f"{len(split.rows)} {name} pairs from templates; {counts}")
    note(f"dataset: {folder}")


def _trials(
    count: int, max_depth: int, prompt: Prompt, executor: Executor, folder: Path
) -> list[GraphTrial]:
    """Asks PyTorch's compiler for training graphs, with a progress bar, and notes the counts."""
    from rich.progress import Progress

    from kernel_gym.training.graph_corpus import GraphSplit, admitted_tasks
    from kernel_gym.training.inductor_corpus import JOURNAL, refusals, try_graphs

    graphs = admitted_tasks(GraphSplit.TRAIN, count, max_depth, f"inductor {executor.seed}")
    folder.mkdir(parents=True, exist_ok=True)
    with Progress(console=messages) as bar:
        line = bar.add_task("TorchInductor", total=count)
        trials = try_graphs(graphs, prompt, executor, folder / JOURNAL, lambda: bar.advance(line))
    right = sum(not each.refused for each in trials)
    note(f"{right} of {count} graphs have TorchInductor's kernel; {refusals(trials)} refused")
    return trials
