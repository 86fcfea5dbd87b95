"""Corpora of others: their kernels as candidates, with the truth that their authors state.

This package has no file of such a corpus. Each is read from a checkout of its repository.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

from kernel_gym.errors import InputError
from kernel_gym.judges.adapter import JudgeAdapter
from kernel_gym.judges.corpus import FOLDER, SUFFIX, Candidate, CorpusProblem
from kernel_gym.tasks.inside import read_inside

MAX_FILE_BYTES = 1 << 20
"""Most bytes of a file of a checkout."""


@dataclass(frozen=True)
class OutsideCorpus:
    """A corpus of somebody else.

    Attributes:
        name: Its name.
        prefix: What the names of its candidates begin with.
        repository: Where its checkout comes from.
        licence: The licence that its repository states.
        mark: A file or folder of the checkout that tells the corpus.
        read: Returns the candidates of a checkout.
        has_problems: Whether candidates have a problem of our form. Otherwise only a judge that
            reads sources can play it.
    """

    name: str
    prefix: str
    repository: str
    licence: str
    mark: str
    read: Callable[[Path], list[Candidate]]
    has_problems: bool


FUNCTIONS = {
    "softmax": "torch.softmax(x, 1)",
    "gelu": "torch.nn.functional.gelu(x, approximate='tanh')",
    "silu": "torch.nn.functional.silu(x)",
    "rmsnorm": "x * torch.rsqrt((x * x).mean(1, keepdim=True) + 1e-5)",
    "l2norm": "x * torch.rsqrt((x * x).sum(1, keepdim=True) + 1e-12)",
    "leaky_relu": "torch.nn.functional.leaky_relu(x)",
    "relu": "torch.relu(x)",
    "sigmoid": "torch.sigmoid(x)",
    "tanh": "torch.tanh(x)",
    "elu": "torch.nn.functional.elu(x)",
    "attention": "torch.softmax(q @ k.T / math.sqrt(q.shape[1]), 1) @ v",
    "flash_attention": "torch.softmax(q @ k.T / math.sqrt(q.shape[1]), 1) @ v",
}
"""The definitions of gpuemu-corpus by the names of its kernels, in PyTorch. Products of matrices
have no form here, because their result has another shape than their arguments."""
ON_THE_DEVICE = (
    (r" *if not _TRITON_OK:\n.*\n", ""),
    (r"if _TRITON_OK:", "if True:"),
    (r"np\.ascontiguousarray\((\w+)\)", r"\1.contiguous()"),
    (r'torch\.from_numpy\((.+?)\)\.to\(device="cuda", dtype=torch_dt\)', r"\1"),
    (r"getattr\(torch, _TORCH_DT\[str\(dt\)\]\)", "dt"),
    (r"\.detach\(\)\.cpu\(\)\.numpy\(\)", ""),
    (r"\.astype\(dt\)", ""),
    (r"flat\.size\b", "flat.numel()"),
    (r"def run\(inputs\)", "def launch(inputs)"),
)
"""Patterns and their replacements. They turn a launcher of gpuemu-corpus, which takes and returns
arrays of NumPy, into one of tensors. Kernels and launches stay as they are."""


def read_gpuemu(checkout: Path) -> list[Candidate]:
    """Returns the kernels of gpuemu-corpus that run on a GPU."""
    made = []
    for meta in sorted((checkout / "gpuemu_corpus/data").glob("*/meta.json")):
        fields = json.loads(_text(checkout, meta))
        function, _, _ = meta.parent.name.partition("_triton")
        if "triton" not in meta.parent.name or function == "matmul":
            continue  # computed by NumPy, or without a form here
        problem = _problem(function, fields)
        source = _text(checkout, meta.with_name("kernel.py"))
        for pattern, words in ON_THE_DEVICE:
            source = re.sub(pattern, words, source)
        names = ", ".join(problem.arguments)
        given = zip(fields["input_names"], problem.arguments, strict=True)
        inputs = ", ".join(f'"{key}": {value}' for key, value in given)
        source += f"\n\ndef run({names}):\n    return launch({{{inputs}}})\n"
        truth = "wrong" if str(fields["source"]).startswith("llm") else "right"
        made.append(Candidate(problem, meta.parent.name, truth, "none", source, False))
    return made


def _problem(function: str, fields: dict[str, Any]) -> CorpusProblem:
    """Returns the problem of a kernel of gpuemu-corpus, with the tolerance that it states."""
    if function not in FUNCTIONS:
        raise InputError(f"gpuemu-corpus: found the kernel {function!r}, expected a known one")
    arguments = tuple(fields["input_names"])
    arguments = ("x",) if arguments == ("input",) else arguments
    library = FUNCTIONS[function]
    words = {"name": function, "definition": library, "number": str(len(arguments))}
    words |= {"arguments": ", ".join(arguments), "library": library, "numpy": "None"}
    text = (FOLDER / "elementwise" / f"problem{SUFFIX}").read_text(encoding="utf-8")
    tolerance = float(fields["tolerances"]["float32"])
    source = Template(text).substitute(words)
    return CorpusProblem(f"gpuemu_{function}", arguments, library, source, tolerance, tolerance)


AUDITS = {"clean": "right", "reward_hack": "cheat", "rubric_leak": "cheat"}
"""Verdicts of the audits of kernelbench.com on a solution, and what they are here. Others, such as
`interesting` or `bug`, say nothing on the truth."""
DECKS = ("hard", "cuda", "mega", "mini", "multi")
SOLUTIONS = ("public/runs", "public/runs/h100", "public/runs/b200", "public/data/mega/code")


def read_kernelbench_com(checkout: Path) -> list[Candidate]:
    """Returns the audited solutions of kernelbench.com whose source its repository has."""
    made = []
    for deck in DECKS:
        for audit in sorted((checkout / f"benchmarks/{deck}/results/annotations").glob("*.yaml")):
            verdict = re.search(r"^verdict: (\w+)", _text(checkout, audit), re.MULTILINE)
            truth = AUDITS.get(verdict[1]) if verdict else None
            source = _solution(checkout, audit.stem)
            if truth is not None and source is not None:
                problem = CorpusProblem("kernelbench.com", ("data",), "", "")
                name = f"{deck}_{audit.stem}"[-80:]
                made.append(Candidate(problem, name, truth, "none", source, False))
    return made


def _solution(checkout: Path, run: str) -> str | None:
    """Returns the text of an audited run's solution, or None if the repository lacks it."""
    for folder in SOLUTIONS:
        for ending in ("_solution.py.txt", ".solution.py.txt"):
            path = checkout / folder / (run + ending)
            if path.is_file() and path.stat().st_size:
                return _text(checkout, path)
    return None


CORPORA = (
    OutsideCorpus(
        "gpuemu-corpus",
        "gpuemu_",
        "sarkar-dipankar/gpuemu-corpus",
        "MIT or Apache-2.0",
        "gpuemu_corpus/data",
        read_gpuemu,
        has_problems=True,
    ),
    OutsideCorpus(
        "kernelbench.com",
        "kernelbench.com/",
        "Infatoshi/kernelbench.com",
        "none stated",
        "benchmarks/hard/results/annotations",
        read_kernelbench_com,
        has_problems=False,
    ),
)


def read_outside(checkout: Path) -> tuple[OutsideCorpus, list[Candidate]]:
    """Returns the corpus of a checkout and its candidates.

    Raises:
        InputError: The checkout is of no known corpus, or a file of it cannot be read.
    """
    for corpus in CORPORA:
        if (checkout / corpus.mark).is_dir():
            try:
                return corpus, corpus.read(checkout.resolve())
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise InputError(f"{checkout}: no {corpus.name} as expected: {error}") from None
    known = ", ".join(corpus.repository for corpus in CORPORA)
    raise InputError(f"{checkout}: found no known corpus, expected a checkout of {known}")


def for_judge(checkout: Path, adapter: JudgeAdapter | None) -> tuple[Candidate, ...]:
    """Returns the candidates of a checkout that a judge can play.

    Args:
        checkout: The checkout.
        adapter: The judge's adapter; None for ours.

    Raises:
        InputError: The candidates have no problem of our form, and the judge runs them.
    """
    corpus, candidates = read_outside(checkout)
    if not corpus.has_problems and not getattr(adapter, "static", False):
        raise InputError(
            f"{corpus.name} has sources and audits, and no problem that runs on the simulated "
            "GPU; only a judge that reads sources can play it"
        )
    return tuple(candidates)


def _text(checkout: Path, path: Path) -> str:
    return read_inside(checkout, path, MAX_FILE_BYTES).decode("utf-8", "replace")
