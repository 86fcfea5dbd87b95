"""Predictions on disk: written before a measured time is read, and read again to be scored."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.clock.points import MeasuredTime, Point
from benchmarks.clock.predicting import READY
from benchmarks.clock.scores import FLOORS, Compared, as_measured, verdict_factor
from kernel_gym.errors import InputError, KernelGymError
from kernel_gym.sim.constants import TIMING_MODEL_VERSION
from kernel_gym.sim.timing.compared import ComparedKernels, merged, read, residual, write


def header(points: Path, device: str, languages: Collection[str] = ()) -> dict[str, str]:
    """The first line of a file of predictions: what they rest on.

    Args:
        points: The file of points.
        device: The architecture that is simulated.
        languages: Packages beside Triton that compile points; their versions are stated.

    Raises:
        InputError: One of these packages is not installed.
    """
    try:
        versions = {name: importlib.metadata.version(name) for name in sorted(languages)}
    except importlib.metadata.PackageNotFoundError as error:
        raise InputError(f"points need {error.name}: pip install 'kernel-gym[flydsl]'") from error
    return versions | {
        "record": "predictions",
        "timing_model": TIMING_MODEL_VERSION,
        "device": device,
        "triton": importlib.metadata.version("triton"),
        "points_sha256": hashlib.sha256(points.read_bytes()).hexdigest(),
    }


def predict(
    points: Sequence[Point],
    checkouts: Sequence[Path],
    out: Path,
    first: dict[str, str],
    step: Callable[[str], None] = lambda name: None,
) -> None:
    """Models points in a process of its own and appends them to a file.

    The process gets the points without what was measured. Points that the file has are left out.

    Args:
        points: What to model.
        checkouts: Folders with the kernels. Their files run without a sandbox.
        out: The file; a new one begins with the header.
        first: The header.
        step: Called with the name of each point that is done.

    Raises:
        KernelGymError: If the process does not start.
        InputError: If the file was written for other points, another model, device or Triton.
    """
    if out.exists() and out.stat().st_size:
        known, done = read_predictions(out)
        if known != first:
            unlike = ", ".join(name for name in first if known.get(name) != first[name])
            raise InputError(f"{out} has other predictions: they differ in {unlike}")
    else:
        done = {}
        out.write_text(json.dumps(first) + "\n", encoding="utf-8")
    wanted = [point for point in points if point.identity not in done]
    with out.open("a", encoding="utf-8") as file:
        for line in _modelled(wanted, checkouts, first["device"]):
            file.write(json.dumps(line) + "\n")
            file.flush()
            step(line["id"])


def _modelled(
    points: Sequence[Point], checkouts: Sequence[Path], device: str
) -> Iterator[dict[str, Any]]:
    """Yields the prediction of each point. A process that ends costs the point that it was at."""
    left = list(points)
    while left:
        command = [
            sys.executable,
            "-m",
            "benchmarks.clock.predicting",
            device,
            *map(str, checkouts),
        ]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as child:
            assert child.stdin
            assert child.stdout
            if child.stdout.readline().strip() != READY:
                child.kill()
                raise KernelGymError("the process that models did not start; its errors are above")
            done = 0
            for point in left:
                try:
                    child.stdin.write(json.dumps(asdict(point)) + "\n")
                    child.stdin.flush()
                except BrokenPipeError:
                    break
                answer = child.stdout.readline()
                if not answer:
                    break
                yield json.loads(answer)
                done += 1
            if done < len(left):
                child.kill()
        if done < len(left):
            reason = f"the process that models ended with status {child.returncode}"
            yield {"id": left[done].identity, "refused": reason}
            done += 1
        left = left[done:]


def read_predictions(path: Path) -> tuple[dict[str, str], dict[str, dict[str, Any]]]:
    """The header of a file of predictions, and the predictions by the name of the point.

    Raises:
        InputError: If the file is none.
    """
    try:
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError) as error:
        raise InputError(f"{path} has no predictions: {error}") from error
    if not lines or not isinstance(lines[0], dict) or lines[0].get("record") != "predictions":
        raise InputError(f"{path} does not begin with the header of predictions")
    return lines[0], {line["id"]: line for line in lines[1:]}


def compare(
    points: Sequence[Point],
    predictions: dict[str, dict[str, Any]],
    measured: dict[str, MeasuredTime],
) -> tuple[list[Compared], dict[str, str]]:
    """Joins predictions with measured times.

    Returns:
        Compared points, and by name of each other point the reason why it is not compared.
    """
    rows, reasons = [], {}
    for point in points:
        name = point.identity
        prediction, time = predictions.get(name), measured.get(name)
        if prediction is None or "refused" in prediction:
            reasons[name] = prediction["refused"] if prediction else "no prediction"
        elif time is None or time.suspect or time.is_of_the_host:
            reasons[name] = "no measured time of the GPU"
        else:
            rows.append(_compared(point, prediction, time))
    return rows, reasons


def _compared(point: Point, prediction: dict[str, Any], time: MeasuredTime) -> Compared:
    seconds = prediction["seconds"]
    is_far = time.microseconds >= FLOORS * point.floor
    return Compared(
        *(point.identity, point.family, point.group, time.microseconds),
        as_measured(seconds, point.floor, point.overhead),
        verdict_factor(time.microseconds, seconds, point.overhead) if is_far else None,
        seconds,
        prediction["profile"],
    )


def compared_kernels(first: dict[str, str], rows: Sequence[Compared]) -> ComparedKernels:
    """Returns what the repository keeps of compared points: families, factors, kinds of launches.

    Args:
        first: The header of the predictions.
        rows: The points.
    """
    groups: dict[str, int] = {}
    kept = tuple(
        residual(
            row.family,
            groups.setdefault(row.group, len(groups)),
            row.factor,
            row.seconds,
            row.profile,
        )
        for row in rows
        if row.factor is not None
    )
    return ComparedKernels(first["timing_model"], first["device"], first["triton"], kept)


def store_compared(
    path: Path, first: dict[str, str], rows: Sequence[Compared], predicted: Collection[str]
) -> None:
    """Writes what the repository keeps of compared points, beside rows of families not predicted.

    Args:
        path: The file. If it exists, its rows of other families stay.
        first: The header of the predictions.
        rows: The points.
        predicted: The families of all points that were predicted.

    Raises:
        InputError: If the file's rows are of another device or Triton, or have other times.
    """
    latest = compared_kernels(first, rows)
    if path.exists():
        try:
            latest = merged(read(path), latest, predicted)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path} cannot be continued: {error}") from error
    write(path, latest)
