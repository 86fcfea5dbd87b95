"""`kernel-gym bench outside`: runs programs of others and writes the table of them."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from kernel_gym.commands.bench.outside import suites
from kernel_gym.commands.bench.outside.table import markdown
from kernel_gym.commands.common import JsonOption, messages, note, one_line_errors, print_json
from kernel_gym.errors import InputError

RECORDS, RESULT, TABLE = "records.jsonl", "outside.json", "outside.md"


def outside(
    out: Annotated[Path, typer.Option(file_okay=False, help="A folder for the results.")],
    only: Annotated[
        list[str] | None, typer.Option(help="Programs whose suite/name has this text.")
    ] = None,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds for each program.")] = 300,
    again: Annotated[bool, typer.Option(help="Also run what has failed before.")] = False,
    device: Annotated[str, typer.Option("--device", "-d", help="A simulated one.")] = "sim:gfx942",
    json_: JsonOption = False,
) -> None:
    """Run Triton's tutorials and other people's suites on the simulated GPU.

    KERNEL_GYM_CHECKOUTS names a folder with checkouts: triton, rocm-examples, Liger-Kernel,
    flash-linear-attention, aiter, HeCBench, TritonBench. HIP programs are built in them. A second
    call continues where the first one has ended. It writes outside.json and the table outside.md.

    Example: KERNEL_GYM_CHECKOUTS=../checkouts kernel-gym bench outside --out outside
    """
    from kernel_gym.commands.bench.outside.run import run_program
    from kernel_gym.worker.sim.settings import SimSettings

    with one_line_errors():
        all_programs = suites.programs(_checkouts())
        settings = SimSettings(device=device)
        out.mkdir(parents=True, exist_ok=True)
        records = _read(out / RECORDS)
    chosen = [p for p in all_programs if _is_chosen(p, only, records, again)]
    for number, program in enumerate(chosen, start=1):
        name = f"{program.suite}/{program.name}"
        with messages.status(f"{number} of {len(chosen)}: {name}"):
            record = run_program(program, settings, timeout)
        records[name] = record
        with (out / RECORDS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        note(f"{number}/{len(chosen)} {name}: {record['outcome']} {record['reason']}")
    planned = Counter(program.suite for program in all_programs)
    ordered = [r for p in all_programs if (r := records.get(f"{p.suite}/{p.name}"))]
    result = {"device": device, "timeout": timeout, "planned": planned, "records": ordered}
    (out / RESULT).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    text = markdown(ordered, planned)
    (out / TABLE).write_text(text, encoding="utf-8")
    print_json(result) if json_ else print(text)


def _checkouts() -> Path:
    place = os.environ.get(suites.CHECKOUTS)
    if not place or not Path(place).is_dir():
        raise InputError(f"{suites.CHECKOUTS}: found {place}, expected a folder with checkouts")
    for name in suites.missing(Path(place)):
        note(f"no checkout of {name} in {place}: its programs are left out")
    return Path(place).resolve()


def _read(path: Path) -> dict[str, dict]:
    """Returns the last record of each program by its name."""
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines if line.endswith("}")]
    return {f"{record['suite']}/{record['name']}": record for record in records}


def _is_chosen(
    program: suites.Program, only: list[str] | None, records: dict[str, dict], again: bool
) -> bool:
    name = f"{program.suite}/{program.name}"
    if only and not any(text in name for text in only):
        return False
    known = records.get(name)
    return known is None or (again and known["outcome"] != "passed")
