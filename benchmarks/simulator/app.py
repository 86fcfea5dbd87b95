"""`python -m benchmarks simulator` and `record`: the simulator's speed and its clock."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Annotated, Any

import typer

from kernel_gym.commands.common import (
    JsonOption,
    console,
    messages,
    note,
    one_line_errors,
    print_json,
)
from kernel_gym.commands.tables import folding_table


def simulator(
    interpreter: Annotated[
        bool, typer.Option(help="Time Triton's interpreter too (a minute or more).")
    ] = True,
    json: JsonOption = False,
) -> None:
    """Compare the simulator's speed with Triton's interpreter, and check its timing model.

    Times are processor seconds of this machine (wall clock for two threads). Modelled ones are
    compared with a full trace, and with published figures of an MI300X. The command `clock`
    compares modelled times with measured ones of kernels.

    Example: python -m benchmarks simulator --no-interpreter
    """
    from rich.progress import Progress

    from benchmarks.simulator.benchmark import Bench, compare_published, interpret, simulate
    from benchmarks.simulator.kernels import speed_cases

    cases = speed_cases()
    bench = Bench()
    rows, slow = [], {}
    with Progress(console=messages, transient=True) as progress:
        bar = progress.add_task("", total=len(cases) * (1 + interpreter) + 1)
        for case in cases:
            progress.update(bar, description=case.name)
            rows.append(simulate(case, bench))
            progress.advance(bar)
        for found in interpret() if interpreter else ():
            slow[found["name"]] = found["s"]
            progress.update(bar, description=f"interpreter: {found['name']}", advance=1)
        progress.update(bar, description="published figures")
        validation = compare_published(bench)
    for row in rows:
        seconds = slow.get(row["name"])
        row["over_interpreter"] = seconds / row["plain_s"] if seconds else None
    if json:
        print_json({"speed": rows, "validation": validation})
    else:
        _show_simulator(rows, validation)


def _show_simulator(rows: list[dict[str, Any]], validation: dict[str, Any]) -> None:
    counted = ("workgroups", "ms", "over interpreter", "two threads", "with the model")
    numbers = (*counted, "modelled us", "sampling error")
    title = "the simulator on this machine, one thread unless said"
    table = folding_table("kernel", *numbers, right=numbers, title=title)
    for row in rows:
        ratio = row["over_interpreter"]
        table.add_row(
            row["name"],
            str(row["workgroups"]),
            f"{row['plain_s'] * 1e3:.1f}",
            "" if ratio is None else f"{ratio:,.0f}x",
            f"{row['two_threads']:.2f}x",
            f"{row['instrumented']:.2f}x",
            f"{row['modelled_us']:.2f}",
            f"{row['sampling_error']:+.1%}",
        )
    console.print(table)
    ratios = [row["over_interpreter"] for row in rows if row["over_interpreter"]]
    if ratios:
        low = f"{min(ratios):,.0f}x"
        console.print(
            f"over the interpreter: median {statistics.median(ratios):,.0f}x, least {low}"
        )
    figures = ("published", "modelled", "error")
    title = "modelled against published figures of an MI300X"
    table = folding_table("figure", *figures, "source", right=figures, title=title)
    for row in validation["figures"]:
        published, modelled = f"{row['value']:g} {row['unit']}", f"{row['modelled']:.3g}"
        name = f"{row['kind']} {row['name']}"
        table.add_row(name, published, modelled, f"{row['error']:+.0%}", row["source"])
    console.print(table)
    console.print(
        f"median error {validation['median_error']:.0%}; order of pairs that differ by 1.3x: "
        f"{validation['pairs_in_order']} of {validation['pairs']}"
    )


def ladders(
    store: Annotated[bool, typer.Option(help="Write benchmarks/calibration/ladders.json.")] = False,
) -> None:
    """Compare the steps of textbook ladders with what they gained on AMD GPUs.

    It prints the table of the documentation, and takes about 15 processor seconds.

    Example: python -m benchmarks ladders --store
    """
    from benchmarks.simulator.ladders import STORED, Ladders, markdown, occupancies, run_ladders
    from kernel_gym.sim.constants import TIMING_MODEL_VERSION

    steps = (*run_ladders(), *occupancies())
    command = "python -m benchmarks ladders --store"
    print(markdown(steps), end="")
    if store:
        kept = Ladders(timing_model=TIMING_MODEL_VERSION, command=command, steps=steps)
        STORED.write_text(kept.model_dump_json(indent=1) + "\n", encoding="utf-8")


def record(
    points: Annotated[Path, typer.Argument(help="Points whose launches are measured.")],
    out: Annotated[Path, typer.Option(help="File of the new points.")],
    kernels: Annotated[
        Path | None, typer.Option(help="Folder of the kernels; by default the file's folder.")
    ] = None,
) -> None:
    """Measure the launches of a file of points on this machine's GPU (ROCm or CUDA).

    The result is a file for `python -m benchmarks clock --points`.

    Example: python -m benchmarks record launches.jsonl --kernels kernels --out mi300x.jsonl
    """
    from rich.progress import track

    from benchmarks.simulator.measure import MeasuringDevice

    with one_line_errors():
        device = MeasuringDevice()
    folder, measured = kernels or points.parent, []
    lines = [line for line in points.read_text(encoding="utf-8").splitlines() if line.strip()]
    for number, line in enumerate(track(lines, "measuring", console=messages, transient=True), 1):
        try:
            measured.append(device.measure(line, folder))
        except Exception as error:  # one kernel that fails does not end the recording
            note(f"not measured: line {number}: {type(error).__name__}: {error}"[:200])
    out.write_text("".join(json.dumps(each) + "\n" for each in measured), encoding="utf-8")
    console.print(f"{len(measured)} of {len(lines)} points in {out}, measured on {device.name}")
