"""`kernel-gym rescore`: score a recorded run with another reward."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernel_gym.commands.common import (
    JsonOption,
    OverwriteOption,
    RewardOption,
    console,
    limits_text,
    one_line_errors,
    print_json,
    summary_table,
)


def rescore(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A run folder.")],
    reward: RewardOption,
    out: Annotated[
        Path | None, typer.Option(help="Write it as a run of its own.", file_okay=False)
    ] = None,
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
) -> None:
    """Score a recorded run under another reward, without evaluating anything.

    Example: kernel-gym rescore runs/demo --reward agentkernelarena
    """
    from kernel_gym.analysis.replay import rescore, write_rescored
    from kernel_gym.analysis.summary import summarise_records
    from kernel_gym.rewards import get_reward
    from kernel_gym.storage.run_store import RunStore

    with one_line_errors():
        store, scored = RunStore(folder), get_reward(reward)
        records = rescore(store, scored)
        if out is not None:
            write_rescored(store, records, reward, out, overwrite)
    unfinished = len({task for task, _ in store.unfinished()})
    summary = summarise_records(store.config.tasks, records, unfinished)
    if json:
        turns = [{"task": r.task, "turn": r.turn, "reward": r.reward} for r in records]
        print_json({"reward": reward, **summary.as_dict(), "turns": turns})
        return
    console.print(summary_table(summary))
    if limits := limits_text(summary):
        console.print(limits, highlight=False, soft_wrap=True)
    mean = "-" if summary.mean_reward is None else f"{summary.mean_reward:.4f}"
    console.print(f"mean best reward under {reward}: {mean}", highlight=False)
