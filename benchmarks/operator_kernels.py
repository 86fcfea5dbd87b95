"""Single operators of eager PyTorch, by their formula and as a simulated kernel of a compiler."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchmarks.compiled_graphs import modelled_seconds, single_operators
from benchmarks.figures import Subject
from benchmarks.renewal import NewEntry, entry_maker, rounded, store
from kernel_gym.commands.common import one_line_errors
from kernel_gym.errors import InputError
from kernel_gym.records import Record
from kernel_gym.sim.constants import TIMING_MODEL_VERSION
from kernel_gym.storage.json_lines import append_line, drop_cut_off, read_lines

if TYPE_CHECKING:
    from kernel_gym.programs.simulation import Simulation

SUBJECT = "operator-kernels"
SIZES = ((64, 1000), (256, 512), (256, 4096), (1024, 1024))
DTYPES = ("float16", "float32")
COVERED = 0.9
"""Share of the cases that the stated factor covers."""


class OperatorRow(Record):
    """One operator at one size: its two modelled times in seconds."""

    operator: str
    size: tuple[int, int]
    dtype: str
    timing_model: str
    eager: float
    compiled: float

    @property
    def case(self) -> tuple[str, tuple[int, int], str]:
        """Operator, size and type, which no other row has."""
        return self.operator, self.size, self.dtype

    @property
    def ratio(self) -> float:
        """The time of the formula over that of the simulated kernel."""
        return self.eager / self.compiled


def operator_kernels(
    out: Annotated[Path, typer.Argument(help="A file of JSON lines, which is continued.")],
) -> None:
    """Compare the formula of eager PyTorch's operators with simulated kernels of Inductor.

    Both compute the same operator. The formula is what a claim is compared with on the simulator.

    Example: kernel-gym sim -- python -m benchmarks operator-kernels operators.jsonl
    """
    from kernel_gym.programs.simulation import simulation

    gpu = simulation()
    if gpu is None:
        raise typer.BadParameter(
            "no simulated GPU here: put `kernel-gym sim --` before the command"
        )
    with one_line_errors():
        drop_cut_off(out)
        rows = list(read_lines(out, OperatorRow))
        if any(row.timing_model != TIMING_MODEL_VERSION for row in rows):
            raise InputError(f"{out} has rows of another timing model")
        known = {row.case for row in rows}
        cases = list(product(sorted(_operators()), SIZES, DTYPES))
        for case in [c for c in cases if c not in known]:
            rows.append(_run(gpu, *case))
            append_line(out, rows[-1])
            typer.echo(f"{len(rows)} of {len(cases)}: {case} {rows[-1].ratio:.3f}")
        store(SUBJECT, figures(rows, entry_maker(SUBJECT)))


def _operators() -> dict[str, Callable]:
    """Functions of two tensors of one shape, each of which is one operator of eager PyTorch."""
    return single_operators() | {
        "row_sum": lambda x, y: x.sum(-1),
        "row_maximum": lambda x, y: x.amax(-1),
        "column_sum": lambda x, y: x.sum(0),
    }


def _run(gpu: Simulation, operator: str, size: tuple[int, int], dtype: str) -> OperatorRow:
    import torch

    from kernel_gym.hardware import MI300X
    from kernel_gym.judge.timing.torch_model import call_seconds

    x, y = (torch.randn(size, device="cuda").to(getattr(torch, dtype)) for _ in range(2))
    meta = (x.to("meta"), y.to("meta"))
    call = _operators()[operator]
    torch._dynamo.reset()
    compiled = torch.compile(call, dynamic=False)
    compiled(x, y)
    return OperatorRow(
        operator=operator,
        size=size,
        dtype=dtype,
        timing_model=TIMING_MODEL_VERSION,
        eager=call_seconds(lambda: call(*meta), MI300X),
        compiled=modelled_seconds(gpu, compiled, x, y),
    )


def covering_factor(ratios: Sequence[float]) -> float:
    """The factor within which `COVERED` of the ratios are, in either direction.

    Args:
        ratios: Time of the formula over time of the simulated kernel.
    """
    errors = sorted(max(ratio, 1 / ratio) for ratio in ratios)
    return errors[math.ceil(COVERED * len(errors)) - 1]


def figures(rows: Sequence[OperatorRow], new_entry: NewEntry) -> Subject:
    """Returns the figures of operators.

    Args:
        rows: One for each operator, size and type.
        new_entry: Makes an entry of this subject.
    """
    ratios = [row.ratio for row in rows]
    command = "kernel-gym sim -- python -m benchmarks operator-kernels FILE"
    median = new_entry(
        id="operator-kernels-median",
        metric="Formula of an eager operator over a simulated kernel of it, median",
        value=rounded(statistics.median(ratios), 2),
        unit="times",
        clock="modelled",
        command=command,
        note=f"The figure covers {len(rows)} cases and version {rows[0].timing_model} of the "
        "timing model.",
    )
    factor = new_entry(
        id="operator-kernels-factor",
        metric="Factor within which the formula is for nine of ten of these cases",
        value=rounded(covering_factor(ratios), 2),
        unit="x",
        clock="modelled",
        command=command,
        note=f"The ratios are from {min(ratios):.2f} to {max(ratios):.2f}.",
    )
    return Subject(title="Eager operators by their formula", entries=(median, factor))
