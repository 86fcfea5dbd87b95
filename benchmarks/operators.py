"""`python -m benchmarks operators`: the model of PyTorch operators against a GPU."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.progress import track

from kernel_gym.commands.common import FAILED, JsonOption, console, messages, note, print_json
from kernel_gym.commands.tables import folding_table


def operators(
    measured: Annotated[
        str, typer.Option(help="Device that measured the figures to compare with.")
    ] = "NVIDIA H200",
    json: JsonOption = False,
) -> None:
    """Compare modelled times of PyTorch with measured ones, by the rank of their head-room.

    Head-room is the time of PyTorch over that of the roofline with one launch. It is modelled for
    an MI300X at the sizes of the simulator, and was measured on a GPU at its own sizes.

    Example: python -m benchmarks operators
    """
    from benchmarks.measured_head_room import (
        compared_baselines,
        measured_devices,
        rank_correlation,
    )
    from kernel_gym.hardware import MI300X
    from kernel_gym.tasks.registry import get_problem, problem_names

    names = problem_names()
    problems = track(
        (get_problem(name) for name in names), "modelling", len(names), console=messages
    )
    rows = list(compared_baselines(problems, measured, MI300X))
    if not rows:
        known = ", ".join(measured_devices())
        note(
            f"error: no head-room over PyTorch was measured on {measured}; expected one of {known}"
        )
        raise typer.Exit(FAILED)
    rho = rank_correlation(rows)
    if json:
        print_json({"rho": rho, "problems": [vars(row) for row in rows]})
        return
    title = f"head-room over PyTorch: measured on {measured} and modelled for {MI300X.name}"
    numbers = ("measured", "modelled")
    table = folding_table("problem", *numbers, right=numbers, title=title)
    for row in sorted(rows, key=lambda r: r.measured):
        table.add_row(row.problem, f"{row.measured:.1f}", f"{row.modelled:.1f}")
    console.print(table)
    console.print(f"Spearman's rho {rho:.2f} over {len(rows)} problems")
