"""`kernel-gym corpus`: pairs of graphs and kernels for training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernel_gym.commands.common import note, one_line_errors


def corpus(
    folder: Annotated[Path, typer.Argument(metavar="OUT", help="A folder for the dataset.")],
    pairs: Annotated[int, typer.Option(min=1, help="Training pairs.")] = 20_000,
    held_out: Annotated[int, typer.Option(min=2, help="Held-out graphs.")] = 64,
    max_depth: Annotated[int, typer.Option(min=2, max=6, help="Most operators of a graph.")] = 4,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the training pairs.")] = 0,
    judge: Annotated[
        int, typer.Option(min=0, help="Training pairs to evaluate; with any, all held-out ones.")
    ] = 0,
    device: Annotated[
        str, typer.Option("--device", "-d", help="The device that evaluates.")
    ] = "sim:gfx942",
    workers: Annotated[int, typer.Option(min=1, help="Parallel evaluations.")] = 2,
) -> None:
    """Write a dataset of generated graphs and right Triton kernels, in TRL's format with a card.

    Example: kernel-gym corpus runs/corpus --pairs 20000 --judge 100
    """
    from kernel_gym.episodes.conversation import graph_prompt
    from kernel_gym.executors import make_executor
    from kernel_gym.training.corpus_export import JudgedRows, judge_rows, write_dataset
    from kernel_gym.training.graph_corpus import draw_pairs, graph_of, held_out_tasks, pair_of
    from kernel_gym.training.graph_kernels import default_plan

    with one_line_errors():
        prompt = graph_prompt(device)
        tasks = held_out_tasks(held_out, max_depth)
        new = JudgedRows([pair_of(t, default_plan(graph_of(t)), prompt) for t in tasks], 0, 0)
        train = JudgedRows(draw_pairs(pairs, max_depth, seed, prompt), 0, 0)
        if judge:
            with make_executor("local", device=device, seed=seed, workers=workers) as executor:
                new = judge_rows(new.rows, len(new.rows), executor)
                train = judge_rows(train.rows, judge, executor)
        command = (
            f"kernel-gym corpus OUT --pairs {pairs} --held-out {held_out} --max-depth {max_depth} "
            f"--seed {seed} --judge {judge} --device {device}"
        )
        write_dataset(folder, train, new, command, device)
    for name, split in (("training", train), ("held-out", new)):
        note(f"{len(split.rows)} {name} pairs; {split.right} of {split.judged} judged are right")
    note(f"dataset: {folder}")
