"""`python -m benchmarks outside`: runs programs of others and writes the table of them."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.outside import suites
from benchmarks.outside.cases import SEED
from benchmarks.outside.program import Program
from benchmarks.outside.table import failure_table, suite_table, write_into
from kernel_gym.commands.common import JsonOption, note, one_line_errors, print_json
from kernel_gym.errors import InputError
from kernel_gym.inert import inert_line

MAX_SHOWN_CHARACTERS = 60
RECORDS, RESULT, TABLE = "records.jsonl", "outside.json", "outside.md"
DEVICE_MEMORY = 14 << 30
"""Bytes of the simulated GPU, where the host has them: Liger-Kernel's largest cases need 12 GiB."""
VERSIONS = ("triton", "torch")
"""The packages whose versions the table states."""


def outside(
    out: Annotated[Path, typer.Option(file_okay=False, help="A folder for the results.")],
    only: Annotated[
        list[str] | None, typer.Option(help="Programs whose suite/name has this text.")
    ] = None,
    timeout: Annotated[
        float, typer.Option(min=1, help="Seconds for a program, a build and a case of pytest.")
    ] = 120,
    processor: Annotated[
        int | None,
        typer.Option("--cpu-seconds", min=1, help="Processor seconds of each build and run."),
    ] = None,
    cases: Annotated[int, typer.Option(min=1, help="Most cases of a test file, drawn.")] = 20,
    jobs: Annotated[int, typer.Option(min=1, help="Programs at a time.")] = 1,
    again: Annotated[bool, typer.Option(help="Also run what has failed before.")] = False,
    audit: Annotated[
        bool, typer.Option("--audit", help="Audit every launch, and record what is found.")
    ] = False,
    page: Annotated[
        Path | None,
        typer.Option(dir_okay=False, help="Also put the table of suites into this page."),
    ] = None,
    earlier: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, help="Records of a run to continue, as records.jsonl."
        ),
    ] = None,
    device: Annotated[str, typer.Option("--device", "-d", help="A simulated one.")] = "sim:gfx942",
    json_: JsonOption = False,
) -> None:
    """Run Triton's tutorials and other people's suites on the simulated GPU.

    KERNEL_GYM_CHECKOUTS names a folder with checkouts: triton, rocm-examples, Liger-Kernel,
    flash-linear-attention, aiter, FlagGems, HeCBench, TritonBench, AgentKernelArena (with aiter
    beside it), hip-tests (with HIP and clr). HIP programs are built in them. A second call
    continues where the first one has ended, and --earlier continues a run whose folder is gone. It
    writes outside.json and outside.md.

    Example: KERNEL_GYM_CHECKOUTS=../checkouts python -m benchmarks outside --out outside
    """
    from benchmarks.outside.run import OutsideLimits
    from kernel_gym.simulated_rocm.settings import SimSettings

    with one_line_errors():
        programs = suites.programs(_checkouts())
        settings = SimSettings(device=device, memory=DEVICE_MEMORY, audit=audit)
        out.mkdir(parents=True, exist_ok=True)
        records = read_records(earlier) if earlier else {}
        records |= _read(out)
    chosen = [p for p in programs if _is_chosen(p, only, records, again)]
    limits = OutsideLimits(timeout, cases, processor)
    for number, record in enumerate(_results(chosen, settings, limits, jobs), start=1):
        name = f"{record['suite']}/{record['name']}"
        records[name] = record
        with (out / RECORDS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        note(f"{number}/{len(chosen)} {name}: {record['outcome']} {record['reason']}")
    known = [r for p in programs if (r := records.get(f"{p.suite}/{p.name}"))]
    result = {
        "device": device,
        "seed": SEED,
        "planned": dict(Counter(program.suite for program in programs)),
        "records": known,
    }
    text = _write(out, result | {"versions": _versions(known)}, page)
    print_json(result) if json_ else print(text)


def _results(
    programs: Sequence[Program], settings: Any, limits: Any, jobs: int
) -> Iterator[dict[str, Any]]:
    """Yields the record of each program when it has ended."""
    from benchmarks.outside.run import run_program

    if jobs == 1:
        yield from (run_program(program, settings, limits) for program in programs)
        return
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from multiprocessing import get_context

    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(run_program, program, settings, limits) for program in programs]
        yield from (done.result() for done in as_completed(waiting))


def _write(out: Path, result: Mapping[str, Any], page: Path | None) -> str:
    """Writes the results, one record a line, and the tables. Returns the table of suites."""
    lines = ",\n".join(json.dumps(record) for record in result["records"])
    head = json.dumps({key: value for key, value in result.items() if key != "records"}, indent=1)
    text = f'{head[:-2]},\n "records": [\n{lines}\n]}}\n'
    (out / RESULT).write_text(text, encoding="utf-8")
    table = suite_table(result)
    (out / TABLE).write_text(f"{table}\n{failure_table(result)}", encoding="utf-8")
    if page is not None:
        with one_line_errors():
            write_into(page, table)
    return table


def _versions(records: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Returns the versions of packages that the programs used; several, where they differ."""
    seen: dict[str, set[str]] = {name: set() for name in VERSIONS}
    for record in records:
        for name in VERSIONS:
            seen[name] |= {record["facts"][name]} if name in record["facts"] else set()
    return {name: " and ".join(sorted(numbers)) for name, numbers in seen.items() if numbers}


def _checkouts() -> Path:
    place = os.environ.get(suites.CHECKOUTS)
    if not place or not Path(place).is_dir():
        raise InputError(f"{suites.CHECKOUTS}: found {place}, expected a folder with checkouts")
    for name in suites.missing(Path(place)):
        note(f"no checkout of {name} in {place}: its programs are left out")
    return Path(place).resolve()


def read_records(file: Path) -> dict[str, dict[str, Any]]:
    """Returns the last record of each program by its `suite/name`, from a file of lines.

    Args:
        file: As `records.jsonl` of a run. A last line that a stopped run has cut off is left out.

    Raises:
        InputError: A line is no record.
    """
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines.pop()
    records: list[dict[str, Any]] = []
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
            records.append(record | {"suite": record["suite"], "name": record["name"]})
        except (ValueError, TypeError, KeyError):
            shown = inert_line(line, MAX_SHOWN_CHARACTERS)
            problem = f"{file}, line {number}: found {shown}, expected a record"
            raise InputError(problem) from None
    return _by_name(records)


def _read(out: Path) -> dict[str, dict[str, Any]]:
    """Returns the last record of each program by its name, from an earlier call."""
    records: list[dict[str, Any]] = []
    if (out / RESULT).exists():
        records += json.loads((out / RESULT).read_text(encoding="utf-8"))["records"]
    later = read_records(out / RECORDS) if (out / RECORDS).exists() else {}
    return _by_name(records) | later


def _by_name(records: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {f"{record['suite']}/{record['name']}": record for record in records}


def _is_chosen(
    program: Program,
    only: list[str] | None,
    records: Mapping[str, Mapping[str, Any]],
    again: bool,
) -> bool:
    name = f"{program.suite}/{program.name}"
    if only and not any(text in name for text in only):
        return False
    known = records.get(name)
    return known is None or (again and known["outcome"] != "passed")
