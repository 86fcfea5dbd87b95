"""Ten steps of a matrix product in Gluon on the simulated gfx950, beside what each gained on a GPU.

Source: `kernels/gemm/a16w16` of ROCm/gfx950-gluon-tutorials@04322ed8, which measured ten versions
of a product of float16 matrices on an MI355X, each with its reason. The kernels here are our own,
in `examples/gluon_ladder`. Nothing was fitted to them.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import typer

from benchmarks.figures import Text
from benchmarks.marks import filled
from kernel_gym.commands.common import note, one_line_errors
from kernel_gym.errors import InputError
from kernel_gym.records import Record
from kernel_gym.sim.constants import TIMING_MODEL_VERSION

EXAMPLES = Path(__file__).parents[2] / "examples" / "gluon_ladder"
STORED = Path("benchmarks/calibration/gluon-ladder.json")
PAGE = Path("docs/gluon-ladder.md")
COMMAND = "python -m benchmarks gluon-ladder"
DEVICE = "sim:gfx950"
SHAPE = (4096, 4096, 8192)
"""Rows, columns and depth of the published product."""
PUBLISHED = {
    "v0_plain": 541,
    "v1_buffer_load": 546,
    "v2_async_copy": 672,
    "v3_padded_lds": 770,
    "v4_two_tiles": 1123,
    "v5_registers_ahead": 1128,
    "v6_unrolled": 1055,
    "v7_halves": 1233,
    "v8_quarters": 1257,
    "v9_near_tiles": 1290,
}
"""TFLOPS of the tutorial's version with the same idea, by Triton alone: without the scheduler and
the assembler passes that the tutorial adds outside Triton."""
KERNEL = "matmul_nt_kernel"
_PROGRAM = """
import importlib.util, sys, torch
spec = importlib.util.spec_from_file_location("step", sys.argv[1])
step = importlib.util.module_from_spec(spec)
spec.loader.exec_module(step)
m, n, k = map(int, sys.argv[2:5])
exact = sys.argv[5] == "exact"
torch.manual_seed(0)
make = torch.randn if exact else torch.zeros
x, weight = (make(rows, k, device="cuda").half() for rows in (m, n))
out = step.matmul_nt(x, weight).float()
if exact:
    expected = x.cpu().float() @ weight.cpu().float().t()
    torch.testing.assert_close(out.cpu(), expected, rtol=2e-3, atol=2e-2)
"""


class GluonStep(Record):
    """One step: its file without the ending, and microseconds of a product."""

    name: Text
    modelled_us: float


class GluonLadder(Record):
    """The stored steps, with the model that they were made with."""

    timing_model: Text
    command: Text
    steps: tuple[GluonStep, ...]


def gluon_ladder() -> None:
    """Model ten steps of a matrix product in Gluon for gfx950, and write their table.

    It takes about three processor minutes.

    Example: python -m benchmarks gluon-ladder
    """
    steps = []
    for name in PUBLISHED:
        steps.append(GluonStep(name=name, modelled_us=round(run_step(name, SHAPE) * 1e6, 1)))
        note(f"{name}: {steps[-1].modelled_us} us (modelled)")
    stored = GluonLadder(timing_model=TIMING_MODEL_VERSION, command=COMMAND, steps=tuple(steps))
    STORED.write_text(stored.model_dump_json(indent=1) + "\n", encoding="utf-8")
    with one_line_errors():
        text = page_text(PAGE.read_text(encoding="utf-8"), stored.steps)
    PAGE.write_text(text, encoding="utf-8")
    typer.echo(markdown(stored.steps))


def run_step(name: str, shape: Sequence[int], *, exact: bool = False) -> float:
    """Runs one step as a program of its own, and returns the modelled seconds of its kernel.

    Args:
        name: A name in `PUBLISHED`.
        shape: Rows, columns and depth of the product.
        exact: Compare the product with PyTorch's on the host, and audit the launch; else the
            matrices are zero.

    Raises:
        InputError: It failed, its values are wrong, or the audit has found something.
    """
    words = [str(EXAMPLES / f"{name}.py"), *map(str, shape), "exact" if exact else "zero"]
    audit = ["--audit"] if exact else []
    sim = [sys.executable, "-m", "kernel_gym", "sim", "--json", "--device", DEVICE, *audit, "--"]
    done = subprocess.run([*sim, "python", "-c", _PROGRAM, *words], capture_output=True, text=True)
    if done.returncode:
        raise InputError(f"{name}: {done.stderr.strip()[-400:]}")
    result: dict[str, Any] = json.loads(done.stdout)
    return float(result["kernels"][KERNEL]["seconds"])


def page_text(page: str, steps: Iterable[GluonStep]) -> str:
    """Returns the text of the page with the table.

    Raises:
        InputError: The page lacks its mark.
    """
    return filled(PAGE, page, "gluon-ladder", COMMAND, markdown(steps))


def markdown(steps: Iterable[GluonStep]) -> str:
    """Returns the table: what a step changes, and its gain over the step before."""
    rows = [
        "| step | what it changes | published TFLOPS | modelled TFLOPS | published gain "
        "| modelled gain |",
        "|---|---|--:|--:|--:|--:|",
    ]
    m, n, k = SHAPE
    before: tuple[float, float] | None = None
    for step in steps:
        published, modelled = PUBLISHED[step.name], 2 * m * n * k / step.modelled_us / 1e6
        gains = "| |" if before is None else _gains((published, modelled), before)
        rows.append(f"| `{step.name}` | {reason(step.name)} | {published} | {modelled:.0f} {gains}")
        before = published, modelled
    return "\n".join(rows) + "\n"


def _gains(now: tuple[float, float], before: tuple[float, float]) -> str:
    published, modelled = (new / old for new, old in zip(now, before, strict=True))
    return f"| {published:.2f} | {modelled:.2f} |"


def reason(name: str) -> str:
    """Returns what a step changes: the first sentence of its file, without its number."""
    text = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    sentence = (ast.get_docstring(ast.parse(text)) or "").partition(".\n")[0].partition(": ")[2]
    return " ".join(sentence.rstrip(".").split())
