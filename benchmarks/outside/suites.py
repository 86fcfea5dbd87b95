"""The programs of others that are run, found in checkouts of their repositories.

Nothing of them is part of this project. `KERNEL_GYM_CHECKOUTS` names a folder that holds the
checkouts under the names of their repositories.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.outside import arena, hip_tests
from benchmarks.outside.cases import SMALL_VARIABLE
from benchmarks.outside.program import Program

CHECKOUTS = "KERNEL_GYM_CHECKOUTS"
HECBENCH_PROGRAMS = 80
"""Drawn programs: about half of them need libraries or data that are not in a checkout."""
FLAGGEMS_FILES = 30
"""Drawn test files of about seven hundred, one or two for each operator."""
SEED = 25
"""Seed of the draws of HeCBench's programs and of FlagGems' test files."""
PLUGIN = "benchmarks.outside.cases"
"""The plugin that draws and records the cases of a test file."""
MAX_ARGUMENT = 1024
"""HeCBench's arguments are meant for seconds of a GPU. Larger ones become this on the simulator."""
_ARGUMENTS = {
    "floydwarshall-hip": "128 1 16",
    "gemv-hip": "-s 8192 -i 1 -x 512 -y 2",
    "su3-hip": "-i 1 -l 8 -t 128 -v 3 -w 0",
}
"""Arguments of HeCBench's programs that reject or do not finish with reduced ones."""
_LIGER_VARIABLES = {"LIGER_FUSED_MOE_AUTOTUNE": "0"}
"""One configuration for each kernel of the mixture of experts, instead of a trial of all."""
_SMALL = {SMALL_VARIABLE: "1"}
"""Cases are drawn among the smallest quarter of a file: the largest ones fill a GPU."""
_AITER_VARIABLES = {"AITER_TRITON_ONLY": "1", **_SMALL}
"""aiter's switch for machines where its C++ modules cannot be built: its Triton operators alone."""
_AITER = """
softmax topk gmm normalization/rmsnorm normalization/layernorm normalization/fused_rmsnorm_add
normalization/fused_add_rmsnorm_pad conv/causal_conv1d conv/causal_conv1d_update_single_token
fusions/fused_mul_add fusions/fused_silu_mul gemm/basic/gemm_a16w16
gemm/basic/gemm_a8w8_per_token_scale gemm/batched/batched_gemm_bf16 gemm/feed_forward/ff_a16w16
moe/moe_align_block_size moe/moe_routing_sigmoid_top1_fused attention/mla_decode_rope
attention/prefill_attention attention/extend_attention
"""
"""Test files of aiter that load without its C++ modules and are not for another GPU's formats."""
_FLAGGEMS_VARIABLES = {"GEMS_VENDOR": "amd", **_SMALL}
"""FlagGems asks the vendor's tools for the GPU otherwise."""
_COMPILERS = ("CC=hipcc", "HIPCC=hipcc")
_FLA = """
attn attn_sink attnres based delta_product delta forgetting_attn gla hgrn lightning_attn linear_attn
retention rwkv6 simple_gla solve_tril
"""
_NOT_OPERATORS = (
    "auto_model cute cutile flex_attention monkey_patch mlp tiled_mlp trainer transformers utils"
).split()
"""Words in names of Liger-Kernel's test files that test no Triton operator of its own."""


def programs(checkouts: Path) -> list[Program]:
    """Returns the programs of all suites whose checkout is there."""
    return [
        program
        for folder, finders in SUITES.items()
        if (checkouts / folder).is_dir()
        for find in finders
        for program in find(checkouts / folder)
    ]


def missing(checkouts: Path) -> list[str]:
    """Returns the names of the checkouts that are not there."""
    return [folder for folder in SUITES if not (checkouts / folder).is_dir()]


def _pytest(
    suite: str,
    folder: Path,
    file: Path,
    *paths: Path,
    variables: Mapping[str, str] | None = None,
    arguments: tuple[str, ...] = (),
) -> Program:
    name = str(file.relative_to(folder))
    options = ("-q", "--tb=line", "-o", "addopts=", "-p", "no:cacheprovider", "-p", PLUGIN)
    words = ("python", "-m", "pytest", *options)
    return Program(
        *(suite, name, folder, (*words, *arguments, name)),
        has_cases=True,
        is_long=True,
        paths=paths,
        variables=variables or {},
    )


def _tutorials(checkout: Path) -> Iterator[Program]:
    folder = checkout / "python" / "tutorials"
    for file in sorted(folder.glob("[0-9]*.py")):
        if "import pytest" in file.read_text(encoding="utf-8"):
            yield _pytest("Triton tutorials", folder, file)
        else:
            yield Program(
                "Triton tutorials", file.name, folder, ("python", file.name), is_long=True
            )


def _examples(checkout: Path) -> Iterator[Program]:
    for group in ("HIP-Basic", "Applications"):
        for makefile in sorted((checkout / group).glob("*/Makefile")):
            text = makefile.read_text(encoding="utf-8")
            target = re.search(r"^EXAMPLE\s*:?=\s*(\S+)", text, re.MULTILINE)
            binary = target.group(1) if target else makefile.parent.name
            build = ("make", "-B", "HIPCXX=hipcc")
            name = f"{group}/{makefile.parent.name}"
            yield Program("rocm-examples", name, makefile.parent, (f"./{binary}",), build)


def _liger(checkout: Path) -> Iterator[Program]:
    for file in sorted((checkout / "test" / "transformers").glob("test_*.py")):
        if not any(word in file.stem for word in _NOT_OPERATORS):
            paths = (checkout / "src", checkout)
            yield _pytest("Liger-Kernel", checkout, file, *paths, variables=_LIGER_VARIABLES)


def _fla(checkout: Path) -> Iterator[Program]:
    for name in _FLA.split():
        file = checkout / "tests" / "ops" / f"test_{name}.py"
        if file.exists():
            yield _pytest("flash-linear-attention", checkout, file, checkout, variables=_SMALL)


def _aiter(checkout: Path) -> Iterator[Program]:
    """Yields every tenth test file, and the named ones."""
    folder = checkout / "op_tests" / "triton_tests"
    paths = (checkout, checkout / "aiter" / "jit" / "utils")  # aiter adds the second one too late
    files = sorted(folder.rglob("test_*.py"))
    drawn = set(files[:: max(1, len(files) // 10)])
    named = {
        folder / place / f"test_{name}.py" for place, name in map(os.path.split, _AITER.split())
    }
    for file in sorted(drawn | {file for file in named if file.exists()}):
        yield _pytest("aiter", checkout, file, *paths, variables=_AITER_VARIABLES)


def _flaggems(checkout: Path) -> Iterator[Program]:
    """Yields drawn test files, with their own short list of shapes."""
    files = sorted((checkout / "tests").glob("test_*.py"))
    drawn = random.Random(SEED).sample(files, min(FLAGGEMS_FILES, len(files)))
    for file in sorted(drawn):
        yield _pytest(
            *("FlagGems", checkout, file, checkout / "src"),
            variables=_FLAGGEMS_VARIABLES,
            arguments=("--quick",),
        )


def _tritonbench(checkout: Path) -> Iterator[Program]:
    folder = checkout / "data" / "TritonBench_G_v1"
    for file in sorted(folder.glob("*.py")):
        yield Program("TritonBench-G", file.name, folder, ("python", file.name))


def _hecbench(checkout: Path) -> Iterator[Program]:
    folders = sorted((checkout / "src").glob("*-hip"))
    drawn = random.Random(SEED).sample(folders, min(HECBENCH_PROGRAMS, len(folders)))
    for folder in sorted(drawn):
        arguments = _ARGUMENTS.get(folder.name)
        words = reduced(run_line(folder))
        command = (words[0], *arguments.split()) if arguments else words
        yield Program("HeCBench", folder.name, folder, command, ("make", "-B", *_COMPILERS))


def run_line(folder: Path) -> list[str]:
    """Returns the words with which a Makefile of HeCBench runs its program: the first such line."""
    make = ["make", "--dry-run", "--always-make", *_COMPILERS, "run"]
    done = subprocess.run(make, cwd=folder, capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        words = line.split()
        if words and words[0].startswith("./"):
            return words
    return ["./main"]


def reduced(words: list[str]) -> tuple[str, ...]:
    """Returns a command with smaller integers; the last word, which counts repeats, becomes 1.

    The value of an option such as `-n 8192` is no count of repeats.

    Example:
        >>> reduced(["./main", "8192", "1000"])
        ('./main', '1024', '1')
    """
    small = list(words)
    for place, word in enumerate(words):
        if word.isdecimal():
            small[place] = str(min(int(word), MAX_ARGUMENT))
    if words[-1].isdecimal() and not words[-2].startswith("-"):
        small[-1] = "1"
    return tuple(small)


def _hip_tests(checkout: Path) -> Iterator[Program]:
    for file in hip_tests.drawn_files(checkout, SEED):
        yield Program(
            "hip-tests",
            str(file.relative_to(checkout / "catch" / "unit")),
            file.parent,
            hip_tests.run_words(checkout, file),
            hip_tests.build_words(checkout, file),
            needs_work=False,
        )


SUITES: dict[str, Sequence[Callable[[Path], Iterator[Program]]]] = {
    "triton": (_tutorials,),
    "rocm-examples": (_examples,),
    "Liger-Kernel": (_liger,),
    "flash-linear-attention": (_fla,),
    "aiter": (_aiter,),
    "FlagGems": (_flaggems,),
    "HeCBench": (_hecbench,),
    "TritonBench": (_tritonbench,),
    "hip-tests": (_hip_tests,),
    "AgentKernelArena": (arena.arena_tasks, arena.arena_times, arena.arena_written),
}
"""The functions that find the programs of a checkout, by the checkout's name."""
