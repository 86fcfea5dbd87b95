"""Kernels with one planted fault each: it must be found, and named at the right source line.

The first lines of a seed say which fault, at which lines (either side of a race will do), and how
to launch it: grid | threads or warps | arguments | options.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.sim.support import kernel_text, launch
from tests.sim.triton_kernels import compiled

FOLDER = Path(__file__).parent
SEEDS = sorted(p for p in FOLDER.iterdir() if p.suffix in (".hip", ".py", ".s"))
SEEDS = [path for path in SEEDS if not path.name.startswith(("test_", "__"))]
COMPILERS = ("clang++-19", "/usr/lib/llvm-19/bin/clang++", "/opt/rocm/llvm/bin/clang++")
FLAGS = (
    *("-x", "hip", "--offload-arch=gfx942", "--offload-device-only", "-S", "-O1", "-std=c++17"),
    *("-nogpuinc", "-nogpulib", "-gline-tables-only", "-include", str(FOLDER / "prelude.h")),
)


def values(text):
    """The arguments of a launch."""
    random = np.random.default_rng(0)
    makers = {
        "f32": lambda n: random.standard_normal(n).astype(np.float32),
        "i32": lambda n, high: (np.arange(n) * 7 % high).astype(np.int32),
        "zeros": lambda n: np.zeros(n, np.float32),
        "ints": lambda n: np.zeros(n, np.int32),
    }
    return list(eval(f"[{text}]", makers))


def facts(path):
    """Fault, lines, grid, block, arguments, options."""
    first, second = path.read_text().splitlines()[:2]
    kind, lines = re.search(r"fault: (\w+) at ([\d+]+)", first).groups()
    grid, block, arguments, *options = second.partition("launch:")[2].split("|")
    extra = eval(f"dict({options[0]})") if options else {}
    return kind, [int(n) for n in lines.split("+")], int(grid), int(block), arguments, extra


def assemble(path, arguments, block, options, folder):
    """Returns the assembler text, the LDS bytes from its header, and the threads of a workgroup."""
    if path.suffix == ".s":
        located = "\n".join(
            f"\t.loc\t1 {number} 0\n{line}"
            for number, line in enumerate(path.read_text().splitlines(), 1)
            if line.startswith("\t")
        )
        files = f'\t.file\t1 "." "{path.name}"\n'
        return kernel_text(files + located, arguments=2, lds=256), None, block
    if path.suffix == ".hip":
        compiler = next((command for name in COMPILERS if (command := shutil.which(name))), None)
        if compiler is None:
            pytest.skip("no clang for HIP found")
        output = folder / f"{path.stem}.s"
        subprocess.run([compiler, *FLAGS, str(path), "-o", str(output)], check=True)
        return output.read_text(), None, block
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function = next(v for v in vars(module).values() if hasattr(v, "arg_names"))
    types = ["*fp32" if isinstance(v, np.ndarray) else "i32" for v in values(arguments)]
    text, shared = compiled(function, types, block, 2, (), **options)
    return text, shared, 64 * block


def run(engine, path, folder, audit=True):
    """The fault that is found: kind and the lines it names."""
    _, _, grid, block, arguments, options = facts(path)
    text, shared, threads = assemble(path, arguments, block, options, folder)
    kernel = engine.load(text, shared=shared)
    extra = {k: v for k, v in options.items() if k == "dynamic_lds"}
    torch.manual_seed(0)
    try:
        result = launch(
            engine, kernel, (grid,), (threads,), values(arguments), audit=audit, **extra
        )
    except ValueError as error:
        return ("lds_budget", {0}) if "LDS" in str(error) else (str(error), {0})
    if result.fault is None:
        return "nothing", set()
    sources = (result.fault.source, result.fault.other_source)
    named = {int(s.rpartition(":")[2]) for s in sources if path.name in s}
    return result.fault.kind, named


@pytest.fixture(scope="module")
def faults(engine, tmp_path_factory):
    """Every seed's fault."""
    folder = tmp_path_factory.mktemp("seeded")
    return {path.name: run(engine, path, folder) for path in SEEDS}


def test_planted_faults_are_found_at_their_line(faults):
    escaped = []
    for path in SEEDS:
        kind, lines, *_ = facts(path)
        if faults[path.name][0] != kind or not faults[path.name][1] & set(lines):
            escaped.append(f"{path.name}: expected {kind} at {lines}, found {faults[path.name]}")
    assert not escaped, "\n".join(escaped)


def test_there_are_enough_seeds_of_each_kind():
    kinds = [facts(path)[0] for path in SEEDS]
    assert len(SEEDS) >= 40
    assert len(set(kinds)) >= 11
