"""Reads a claim: a kernel, a baseline and a statement of inputs, in any of three forms.

- `--kernel K --baseline B --inputs S.toml`: the statement of :mod:`kernel_gym.referee.statement`.
- A KernelBench pair: the kernel defines `ModelNew`, the inputs file `Model`, `get_inputs` and
  `get_init_inputs`.
- A solution in JSON (`{"spec": {"entry_point": ...}, "sources": [{"path", "content"}]}`) as kernel.

No text of a claim is executed in this process.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from kernel_gym.referee.pair import pair_statement
from kernel_gym.referee.problem import ClaimedProblem
from kernel_gym.referee.statement import ClaimError, Statement, read_statement, read_text
from kernel_gym.tasks.task import Mode, Task

_TRITON = re.compile(r"^\s*(import triton|from triton)\b", re.MULTILINE)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Claim:
    """A claim that can be judged.

    Attributes:
        problem: What is computed.
        kernel: The source of the claimed kernel; it defines the entry.
        language: "triton" or "hip".
        baseline: The source of the baseline kernel; None if the baseline is PyTorch.
        statement: What was stated.
        files: The names of the files, for the card.
    """

    problem: ClaimedProblem
    kernel: str
    language: str
    baseline: str | None
    statement: Statement
    files: dict[str, str] = field(default_factory=dict)

    @property
    def against_baseline(self) -> Task | None:
        """The task that times the kernel against the baseline kernel; None without one."""
        if self.baseline is None:
            return None
        mode = Mode.HIP2HIP if self.language == "hip" else Mode.TRITON2TRITON
        return Task(self.problem, mode)

    @property
    def against_torch(self) -> Task:
        """The task that times a kernel against eager PyTorch."""
        mode = Mode.TORCH2HIP if self.language == "hip" else Mode.TORCH2TRITON
        return Task(self.problem, mode)


def read_claim(kernel: Path, inputs: Path, baseline: Path | None = None) -> Claim:
    """Reads a claim.

    Args:
        kernel: The claimed kernel: `.py` (Triton), `.hip`, or a solution `.json`.
        inputs: A statement `.toml`, or the reference of a KernelBench pair `.py`.
        baseline: The kernel that the claim compares with, or a PyTorch module. By default the
            claim is against the reference.

    Raises:
        ClaimError: The claim cannot be judged as stated.
        OSError: A file cannot be read.
    """
    source = read_text(kernel)
    reference = ""
    if inputs.suffix == ".py":
        statement, reference, tail = pair_statement(read_text(inputs))
        source += tail
    else:
        statement = read_statement(inputs)
    language = "hip" if kernel.suffix == ".hip" else "triton"
    if kernel.suffix == ".json":
        source, language = solution_source(source, statement.entry)
    other = read_text(baseline) if baseline else None
    torch_baseline = other is not None and baseline is not None and not _is_kernel(baseline, other)
    if statement.reference:
        reference = read_text(inputs.parent / Path(statement.reference).name)
    elif torch_baseline and not reference:
        reference = other or ""
    if not reference:
        raise ClaimError(f"{inputs}: found no key 'reference', and the baseline is no PyTorch "
                         "module; name a PyTorch file that defines the operation")  # fmt: skip
    if torch_baseline:
        other = None
    kernels = {language: other or ""}
    problem = ClaimedProblem(statement, reference, kernels)
    files = {"kernel": kernel.name, "inputs": inputs.name}
    files |= {"baseline": baseline.name} if baseline else {}
    return Claim(problem, source, language, other, statement, files)


def solution_source(text: str, entry: str) -> tuple[str, str]:
    """The source and the language of a solution in JSON; the entry point gets the entry's name.

    Raises:
        ClaimError: It is no solution, or has several sources.
    """
    try:
        solution = json.loads(text)
        spec, sources = solution["spec"], solution["sources"]
        (only,) = sources
        point, content, path = str(spec["entry_point"]), only["content"], str(only["path"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ClaimError(f"solution: {type(error).__name__}: {error}; expected 'spec' with "
                         "'entry_point' and one entry in 'sources'") from None  # fmt: skip
    if not isinstance(content, str):
        raise ClaimError(f"solution: content: found {type(content).__name__}, expected text")
    if spec.get("destination_passing_style"):
        raise ClaimError("solution: destination_passing_style: found true; only entry points "
                         "that return their outputs can be judged")  # fmt: skip
    name = point.rpartition("::")[2]
    if not _IDENTIFIER.fullmatch(name):
        raise ClaimError(f"solution: entry_point: found {point[:80]!r}, expected FILE::FUNCTION")
    language = "hip" if Path(path).suffix in (".hip", ".cpp", ".cu") else "triton"
    if name != entry:
        if language == "hip":
            raise ClaimError(f"solution: entry_point: found {name!r}, expected {entry!r}")
        content += f"\n\n{entry} = {name}\n"
    return content, language


def _is_kernel(path: Path, text: str) -> bool:
    return path.suffix == ".hip" or _TRITON.search(text) is not None
