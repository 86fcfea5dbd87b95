"""Builds and runs HIP programs of others on the simulated GPU, and prints a table.

    ROCM_EXAMPLES=~/rocm-examples HECBENCH=~/HeCBench python scripts/measure_hip.py [NAME...]

The checkouts stay unchanged except for what `make` writes there. Arguments of HeCBench are reduced,
because a simulated GPU is thousands of times slower than a real one.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kernel_gym.worker.hip.drop_in.folders import compiler_folder, library_folder

SECONDS = 60
"""For one program."""
BUILD_SECONDS = 300
FOLDERS = ("HIP-Basic", "Applications")
ARGUMENTS = {
    **{"reaction": "2", "ans": "1", "hybridsort": "r", "mnist": "../mnist-cuda/data 1"},
    **{
        "tensorAccessor": "256 256 2",
        "bgmv": "",
        "logan": "../logan-cuda/inputs/100k.txt 17 100 1",
    },
    **{"axpby": "1", "moe": "64 8 2 1", "simpleMultiDevice": "1", "colorwheel": "10 256 1"},
    **{"determinant": "10", "halo-finder": "", "zmddft": "1", "mtf": "64 1"},
    **{"gemv": "-s 512 -i 1 -x 32 -y 32", "prefetch": "1", "su3": "-i 1 -l 8 -t 128 -v 3 -w 0"},
    **{"convolution1D": "65536 1", "complex": "10000 1", "pointwise": "2 2 64 8 1"},
    **{"sddmm-batch": "", "pnpoly": "1", "graphB+": "../graphB+-cuda/graph.csv 1 output"},
    **{"floydwarshall": "64 1 16", "stencil1d": "131072 1", "burger": "128 128 2"},
    **{"bspline-vgh": "", "sampling": "1", "bsearch": "65536 1", "distort": "64 64 0.001 1"},
    **{"bezier-surface": "-n 256", "gamma-correction": "256 128 16 1", "ccl": "1", "is": "8 8 8"},
    **{"spmm": "", "sort": "3 1", "vanGenuchten": "16 16 16 2", "word2vec": "", "tpacf": ""},
    **{"mrc": "10000 1", "convolutionSeparable": "128 128 1", "bmf": "", "lci": "", "jacobi": ""},
    **{"heat": "64 2", "diamond": "", "spm": "8 1", "addBiasResidualLayerNorm": "1"},
    **{"streamCreateCopyDestroy": "", "babelstream": "-s 16384 -n 2", "lud": "-s 128"},
}
"""Programs of HeCBench, drawn at random, by name with their arguments."""


@dataclass(frozen=True)
class Program:
    """One program: its folder, the words that build it, and those that run it."""

    name: str
    folder: Path
    make: tuple[str, ...]
    arguments: tuple[str, ...]


def programs() -> Iterator[Program]:
    """Yields the programs of the checkouts."""
    examples, suite = os.environ.get("ROCM_EXAMPLES"), os.environ.get("HECBENCH")
    if not examples and not suite:
        raise SystemExit("found no checkout, expected ROCM_EXAMPLES or HECBENCH in the environment")
    for folder in FOLDERS if examples else ():
        for makefile in sorted(Path(examples or "", folder).glob("*/Makefile")):
            make = ("-B", "HIPCXX=hipcc", "ROCM_INSTALL_DIR=/usr")
            yield Program(f"{folder}/{makefile.parent.name}", makefile.parent, make, ())
    for name, words in ARGUMENTS.items() if suite else ():
        folder = Path(suite or "", "src", f"{name}-hip")
        yield Program(name, folder, ("-B", "CC=hipcc"), tuple(words.split()))


def outcome(program: Program, variables: dict[str, str]) -> str:
    """Builds and runs a program; returns `passed`, or the reason why not."""
    if not (program.folder / "Makefile").exists():
        return "no Makefile"
    command = ["make", *program.make]
    try:
        built = _run(command, program.folder, variables, BUILD_SECONDS)
        if built.returncode:
            return f"build: {_line(built.stdout, 'error')}"
        main = _executable(program.folder)
        if main is None:
            return "build: no program"
        done = _run([str(main), *program.arguments], program.folder, variables, SECONDS)
    except subprocess.TimeoutExpired as error:
        return f"not done within {error.timeout:g} s"
    return "passed" if done.returncode == 0 else f"{done.returncode}: {_line(done.stdout, 'gym')}"


def _run(
    command: list[str], folder: Path, variables: dict[str, str], seconds: int
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env=os.environ | variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=seconds,
    )


def _executable(folder: Path) -> Path | None:
    files = (p for p in sorted(folder.iterdir()) if p.is_file() and p.suffix == "")
    return next((p for p in files if os.access(p, os.X_OK)), None)


def _line(text: str, word: str) -> str:
    """The first line with a word, else the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if word in line), lines[-1] if lines else "")[:160]


def main() -> int:
    """Prints the table; returns the exit status."""
    libraries, compiler = library_folder(), compiler_folder()
    if libraries is None or compiler is None:
        raise SystemExit("the HIP runtime is not built: pip install kernel-gym")
    variables = {"PATH": f"{compiler}:{os.environ['PATH']}", "LD_LIBRARY_PATH": str(libraries)}
    wanted, passed, count = sys.argv[1:], 0, 0
    print("| program | outcome |\n|---|---|")
    for program in programs():
        if wanted and program.name not in wanted:
            continue
        text = outcome(program, variables)
        passed, count = passed + (text == "passed"), count + 1
        print(f"| {program.name} | {text} |", flush=True)
    print(f"\n{passed} of {count} passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
