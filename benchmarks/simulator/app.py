"""`python -m benchmarks simulator` and `record`: the simulator's speed and its clock."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from kernel_gym.commands.common import (
    JsonOption,
    console,
    messages,
    note,
    one_line_errors,
    print_json,
)

KernelsOption = Annotated[
    Path | None, typer.Option(help="Folder of the records' kernels; by default the file's folder.")
]


def simulator(
    interpreter: Annotated[
        bool, typer.Option(help="Time Triton's interpreter too (a minute or more).")
    ] = True,
    validate: Annotated[
        Path | None, typer.Option(help="Measured records to hold the timing model against.")
    ] = None,
    kernels: KernelsOption = None,
    plot: Annotated[Path | None, typer.Option(help="File for a plot of the records.")] = None,
    json: JsonOption = False,
) -> None:
    """Compare the simulator's speed with Triton's interpreter, and check its timing model.

    Times are processor seconds of this machine (wall clock for two threads). Modelled ones are
    compared with a full trace, and with published figures of an MI300X. With `--validate` only
    measured records are compared, by kernel family.

    Examples: python -m benchmarks simulator --no-interpreter

    python -m benchmarks simulator --validate mi300x.jsonl --kernels kernels --plot mi300x.png
    """
    if validate is not None:
        return _validate(validate, kernels, plot, json)
    _speed(interpreter, json)


def _speed(interpreter: bool, json: bool) -> None:
    """Times the simulator and prints its speed beside its modelled times."""
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
    table = Table(title="the simulator on this machine, one thread unless said")
    headers = ("kernel", "workgroups", "ms", "over interpreter", "two threads", "with the model")
    for header in (*headers, "modelled us", "sampling error"):
        table.add_column(header, justify="left" if header == "kernel" else "right")
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
    table = Table(title="modelled against published figures of an MI300X")
    for header in ("figure", "published", "modelled", "error", "source"):
        table.add_column(header, justify="left" if header in ("figure", "source") else "right")
    for row in validation["figures"]:
        published, modelled = f"{row['value']:g} {row['unit']}", f"{row['modelled']:.3g}"
        name = f"{row['kind']} {row['name']}"
        table.add_row(name, published, modelled, f"{row['error']:+.0%}", row["source"])
    console.print(table)
    console.print(
        f"median error {validation['median_error']:.0%}; order of pairs that differ by 1.3x: "
        f"{validation['pairs_in_order']} of {validation['pairs']}"
    )


def _validate(path: Path, kernels: Path | None, plot_path: Path | None, json: bool) -> None:
    """Models the launches of measured records and prints how well times and ranks agree."""
    from rich.progress import Progress

    from benchmarks.simulator.records import read_records
    from benchmarks.simulator.validation import plot, validate_records

    with one_line_errors():
        records = read_records(path)
    if not records:
        note(f"error: no record in {path} says how its kernel was launched (field `launch`)")
        raise typer.Exit(2)
    with Progress(console=messages, transient=True) as progress:
        bar = progress.add_task("", total=len(records))

        def step(name: str) -> None:
            progress.update(bar, description=name, advance=1)

        validation = validate_records(records, kernels or path.parent, step)
    if plot_path:
        plot(validation, plot_path)
    if json:
        print_json(validation.to_json())
    else:
        _show_validation(validation)


def _show_validation(validation: Any) -> None:
    table = Table(title="modelled against measured times, with 95 % intervals")
    headers = ("family", "records", "groups", "rho in groups", "top-1 regret", "rho", "tau")
    for header in (*headers, "modelled / measured", "spread"):
        table.add_column(header, justify="left" if header == "family" else "right")
    for name, each in validation.families().items():
        table.add_row(
            *(name, str(each.records), str(each.groups)),
            *(_text(each.rho_groups), _text(each.regret, "{:.0%}")),
            *(_text(each.rho), _text(each.tau), _text(each.ratio)),
            "" if each.spread is None else f"{each.spread:.2f}x",
        )
    console.print(table)
    for name, order in validation.problems().items():
        console.print(
            f"{name}: {order['in_order']} of {order['pairs']} pairs of variants in order, "
            f"median error of their ratio {order['median_ratio_error']:.0%}"
        )
    for name, reason in validation.failed.items():
        note(f"not modelled: {name}: {reason}")


def _text(figure: Any, style: str = "{:.2f}") -> str:
    return figure.text(style) if figure else ""


def record(
    launches: Annotated[Path, typer.Argument(help="Records whose launches are measured.")],
    out: Annotated[Path, typer.Option(help="File of the new records.")],
    kernels: KernelsOption = None,
) -> None:
    """Measure the launches of a file of records on this machine's GPU (ROCm or CUDA).

    The result is a calibration file for `python -m benchmarks simulator --validate`.

    Example: python -m benchmarks record launches.jsonl --kernels kernels --out mi300x.jsonl
    """
    from rich.progress import track

    from benchmarks.simulator.measure import MeasuringDevice
    from benchmarks.simulator.records import read_records, write_records

    with one_line_errors():
        records = read_records(launches)
        device = MeasuringDevice()
    folder, measured = kernels or launches.parent, []
    for each in track(records, "measuring", console=messages, transient=True):
        try:
            measured.append(device.measure(each, folder))
        except Exception as error:  # one kernel that fails does not end the recording
            note(f"not measured: {each.identity}: {type(error).__name__}: {error}"[:200])
    write_records(out, measured)
    console.print(f"{len(measured)} of {len(records)} records in {out}, measured on {device.name}")
