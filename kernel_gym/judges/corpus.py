"""The corpus: problems, and candidates whose header states their class and the argument for it.

A candidate is one file that defines `run(*arguments)`. The files are made of the templates in
`corpus_files/`, one for each kind, and the formulas in `problems.toml` there. Each file stands
alone. `kernel-gym judges show NAME` prints it.
"""

from __future__ import annotations

import hashlib
import textwrap
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from string import Template
from typing import Any

from kernel_gym.errors import InputError

FOLDER = Path(__file__).with_name("corpus_files")
SUFFIX = ".py.txt"
SEED = "corpus-1"
"""Draws the held-out third. A change of it is a new corpus."""
SHOWN_ELEMENTS = 64 * 256
"""Elements of the shape that every judge has."""
CLASSES = ("right", "wrong", "cheat")
SUMS = "sums"
"""The family of problems with one sum over all elements."""
ITSELF = "right_itself"
"""The kind of a right kernel that is judged against itself."""
FACTS = (
    "values",
    "input",
    "library",
    "stale",
    "repeat",
    "clock",
    "checks",
    "later",
    "race",
    "outside",
)
"""Facts that an oracle can observe of a candidate; each is evidence against it."""


@dataclass(frozen=True)
class CorpusProblem:
    """A problem of the corpus: a function of float32 tensors of two dimensions.

    Attributes:
        name: Its name.
        arguments: The names of its arguments.
        library: The function as an expression of PyTorch.
        source: A module with `reference` (PyTorch) and `exact` (NumPy).
        absolute: The absolute part of the tolerance.
        relative: The part that is multiplied by the magnitude of the exact result.
    """

    name: str
    arguments: tuple[str, ...]
    library: str
    source: str
    absolute: float = 1e-5
    relative: float = 1e-4


@dataclass(frozen=True)
class Candidate:
    """A candidate of known truth.

    Attributes:
        problem: What it claims to solve.
        kind: The template's name, such as `wrong_tail`.
        truth: One of `CLASSES`.
        evidence: A fact of `FACTS`, or `none` for a right candidate.
        source: The file.
        held_out: Whether it belongs to the third that no rule is made for.
    """

    problem: CorpusProblem
    kind: str
    truth: str
    evidence: str
    source: str
    held_out: bool

    @property
    def name(self) -> str:
        """The name of the candidate: problem and kind."""
        return f"{self.problem.name}/{self.kind}"

    @property
    def digest(self) -> str:
        """A digest of problem and candidate, 16 hexadecimal digits."""
        text = f"{self.problem.source}\0{self.source}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def draw_number(name: str) -> int:
    """Returns a number that the seed gives to a name, of 64 bits."""
    return int.from_bytes(hashlib.sha256(f"{SEED} {name}".encode()).digest()[:8], "big")


@cache
def candidates() -> tuple[Candidate, ...]:
    """Returns all candidates without those of `sums`, by problem and kind."""
    return _of_families(lambda family: family != SUMS)


@cache
def sums() -> tuple[Candidate, ...]:
    """Returns the candidates of problems that need one sum over all elements.

    They are a second corpus: programs must work together, so that races and atomics appear.
    """
    return _of_families(lambda family: family == SUMS)


def _of_families(chosen: Callable[[str], bool]) -> tuple[Candidate, ...]:
    table = tomllib.loads((FOLDER / "problems.toml").read_text(encoding="utf-8"))
    return tuple(
        candidate
        for family, problems in table.items()
        for name, row in problems.items()
        if chosen(family)
        for candidate in _candidates_of(family, name, row)
    )


def quick() -> tuple[Candidate, ...]:
    """Returns the quick set: two of each kind, by number of arguments."""
    groups: dict[tuple[int, str], list[Candidate]] = {}
    for candidate in candidates():
        key = len(candidate.problem.arguments), candidate.kind
        groups.setdefault(key, []).append(candidate)
    chosen = {
        one.name
        for group in groups.values()
        for one in sorted(group, key=lambda candidate: draw_number(candidate.name))[:2]
    }
    return tuple(candidate for candidate in candidates() if candidate.name in chosen)


def against_itself() -> tuple[Candidate, ...]:
    """Returns right kernels whose problem is defined by the same kernel, one in eight problems.

    What a judge pays them is its bias: an honest judge pays 1.0. They belong to no other set.
    """
    plain = [candidate for candidate in candidates() if candidate.kind == "right_plain"]
    return tuple(_against_itself(candidate) for candidate in plain[::8])


def _against_itself(candidate: Candidate) -> Candidate:
    names = ", ".join(candidate.problem.arguments)
    shown = "ARGUMENTS = {}\nSHOWN = (64, 256)\n\n\ndef reference({}):\n    return compute({})\n"
    constants = shown.format(len(candidate.problem.arguments), names, names)
    kernel = candidate.source.replace("def run(", "def compute(")
    problem = replace(candidate.problem, source=f"{kernel}\n\n{constants}")
    return replace(candidate, problem=problem, kind=ITSELF, held_out=False)


def find(name: str) -> Candidate:
    """Returns the candidate of a name.

    Raises:
        InputError: If there is none.
    """
    for candidate in (*candidates(), *sums(), *against_itself()):
        if candidate.name == name:
            return candidate
    raise InputError(f"the corpus has no candidate {name!r}")


def header(source: str) -> dict[str, str]:
    """Returns the fields of a candidate's header by name."""
    text = source.split('"""')[1]
    return dict(line.split(": ", 1) for line in text.strip().splitlines())


def _candidates_of(family: str, name: str, row: dict[str, Any]) -> list[Candidate]:
    """Returns the candidates of one problem."""
    words = _words(family, name, row)
    source = _fill(FOLDER / family / f"problem{SUFFIX}", words)
    problem = CorpusProblem(name, tuple(row.get("arguments", ["x"])), row["library"], source)
    words["cheat_kernel"] = _cheat_kernel(_fill(FOLDER / family / f"right_plain{SUFFIX}", words))
    skipped = set(row.get("skip", ()))
    if len(problem.arguments) == 1:
        skipped.add("wrong_ignored")
    if "pad" not in row:
        skipped.add("wrong_pad")
    files = [*(FOLDER / family).glob(f"*_*{SUFFIX}"), *(FOLDER / "cheats").glob(f"*{SUFFIX}")]
    made = []
    for path in sorted(files):
        kind = path.name.removesuffix(SUFFIX)
        if kind not in skipped:
            text = _fill(path, words)
            fields = header(text)
            held_out = draw_number(f"{name}/{kind}") % 3 == 0
            made.append(
                Candidate(problem, kind, fields["Class"], fields["Evidence"], text, held_out)
            )
    return made


def _cheat_kernel(right: str) -> str:
    """Returns kernel and launcher of the right candidate, the launcher under the name `compute`."""
    return right.partition("import triton.language as tl\n")[2].strip().replace("run(", "compute(")


def _fill(path: Path, words: dict[str, str]) -> str:
    """Returns a template with its words filled in."""
    text = Template(path.read_text(encoding="utf-8")).substitute(words)
    return text.rstrip() + "\n"


def _words(family: str, name: str, row: dict[str, Any]) -> dict[str, str]:
    """Returns the words of the templates for one problem."""
    names = row.get("arguments", ["x"])
    triton = row.get("triton", "")
    if family == "rows":
        triton = textwrap.indent(triton, "    ")
    result = row.get("result", "")
    return {
        "name": name,
        "definition": row["library"],
        "number": str(len(names)),
        "arguments": ", ".join(names),
        "first": names[0],
        "library": row["library"],
        "numpy": row["numpy"],
        "statistic": row.get("statistic", ""),
        "result": result,
        "result_shown": result.replace("s / n", f"s / {SHOWN_ELEMENTS}"),
        "triton": triton,
        "triton_in_loop": textwrap.indent(triton, "    "),
        "pad": row.get("pad", "0.0"),
        "pointers": ", ".join(f"{x}_ptr" for x in names),
        "loads": _lines(names, "{x} = tl.load({x}_ptr + at, mask=at < n)"),
        "loads_in_loop": _lines(names, "    {x} = tl.load({x}_ptr + at, mask=at < n)"),
        "halves": _lines(names, "{x} = {x}.to(tl.float16).to(tl.float32)"),
        "clamps": _lines(names, "{x} = tl.where({x} < -4, -4.0, tl.where({x} > 4, 4.0, {x}))"),
        "contiguous": _lines(names, "{x} = {x}.contiguous()"),
        "stride_parameters": ", ".join(f"{x}_row, {x}_column" for x in names),
        "stride_arguments": ", ".join(f"{x}.stride(0), {x}.stride(1)" for x in names),
        "strided_loads": _lines(
            names,
            "{x}_at = {x}_ptr + row * {x}_row + column * {x}_column\n"
            "{x} = tl.load({x}_at, mask=column < columns)",
        ),
    }


def _lines(names: list[str], line: str) -> str:
    """Returns a line, or several, for each argument, in a function's indentation."""
    return "\n".join(textwrap.indent(line.format(x=x), "    ") for x in names)
