"""States train workloads: one for each sound form of call, the largest recorded size first.

A form is a template: a function with the structure of its arguments, dtypes, ranks and constants. A
kernel that knows some forms only must fail, so that none is left out in silence.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Protocol

from kernel_gym.imports.manifest import LEFT_OUT
from kernel_gym.imports.readers.base import UnsupportedTask
from kernel_gym.imports.recorded.problem import CALL, RecordedProblem
from kernel_gym.imports.recorded.prompting import describe_call
from kernel_gym.imports.recorded.stated import StatedWorkload

MIN_TRAIN = 4
"""Train workloads that are aimed at. A task whose calls have more forms has one for each."""
MAX_FORMS = 16
"""Most forms of calls that have a workload."""
MAX_SIZES_OF_FORM = 3
"""Most recorded sizes of a form that are tried until one is sound."""
MAX_NOTE = 300
"""Most characters of a note."""
DIFFER = "two calls on the same data differ"
"""The evidence for an answer that is random."""
Sizes = Mapping[int, Sequence[Mapping[str, int]]]
"""The recorded sizes of each form."""


class CallingReference(Protocol):
    """States workloads by calls of the suite's own code."""

    why: str
    failure: str
    evidence: dict[str, dict[str, str]]

    @property
    def late(self) -> bool:
        """Whether the work for a task is done."""

    @property
    def hopeless(self) -> bool:
        """Whether a task is given up that has no workload yet."""

    def train(self, dims: Mapping[str, int]) -> StatedWorkload | None:
        """States a recorded call, or a twin of it."""


def state_train(
    reference: CallingReference, problem: RecordedProblem, recorded: Sequence[Mapping[str, int]]
) -> tuple[list[StatedWorkload], dict[str, str], list[str]]:
    """States one train workload of each sound form, then other sizes of these forms.

    Args:
        reference: Makes calls.
        problem: The problem, with templates.
        recorded: The dimensions of recorded calls, each with its form.

    Returns:
        The workloads, flags of the task with their evidence, and a note on each form left out.

    Raises:
        UnsupportedTask: The suite's own code answers no call.
    """
    sizes = sizes_of_forms(problem, recorded)
    stating = _Stating(reference)
    for form, rows in sizes.items():
        stating.add_form(form, rows)
    stating.add_sizes(sizes)
    if stating.sound:
        notes = [_note(problem, form, lost) for form, lost in stating.lost.items()]
        return stating.sound, stochastic(problem, list(sizes), stating.lost), notes
    if not stating.unsound:
        raise UnsupportedTask(reference.why or "no call of it can be made again")
    kept = stating.unsound[:MIN_TRAIN]
    return kept, dict(reference.evidence[kept[0].key]), []


def sizes_of_forms(problem: RecordedProblem, recorded: Sequence[Mapping[str, int]]) -> Sizes:
    """Returns the recorded sizes of each form, the largest first.

    Args:
        problem: The problem, which knows the size of a call.
        recorded: The dimensions of recorded calls.
    """
    sizes: dict[int, list[Mapping[str, int]]] = {}
    for dims in sorted(recorded, key=problem.elements, reverse=True):
        sizes.setdefault(dims[CALL], []).append(dims)
    return dict(sorted(sizes.items()))


def stochastic(
    problem: RecordedProblem, forms: Sequence[int], lost: Mapping[int, Mapping[str, str]]
) -> dict[str, str]:
    """Flags a task whose default path is random.

    That is the form with the fewest arguments, or half of all forms. Such answers cannot be
    compared, so that a kernel without the random part would pass.

    Args:
        problem: The problem, with templates.
        forms: All recorded forms.
        lost: The forms that are left out, each with the evidence by flag.
    """
    random = [form for form in forms if lost.get(form, {}).get("irreproducible") == DIFFER]
    fewest = min(forms, key=lambda form: _arguments(problem, form))
    if not random or (fewest not in random and 2 * len(random) < len(forms)):
        return {}
    return {"stochastic": f"{len(random)} of {len(forms)} forms of its calls: {DIFFER}"}


class _Stating:
    """Workloads so far.

    Attributes:
        sound: Workloads without objections.
        unsound: Workloads with objections.
        lost: The evidence by flag, of each form without a sound workload.
    """

    def __init__(self, reference: CallingReference) -> None:
        self._reference = reference
        self._kept: dict[int, Mapping[str, int]] = {}
        self.sound: list[StatedWorkload] = []
        self.unsound: list[StatedWorkload] = []
        self.lost: dict[int, dict[str, str]] = {}

    def add_form(self, form: int, rows: Sequence[Mapping[str, int]]) -> None:
        """States the largest size of a form that is sound."""
        reference = self._reference
        over = reference.late if self.sound or self.unsound else reference.hopeless
        if over or len(self._kept) >= MAX_FORMS:
            self.lost[form] = {"not tried": "the work for one task is done"}
            return
        for dims in rows[:MAX_SIZES_OF_FORM]:
            stated = reference.train(dims)
            evidence = reference.evidence[stated.key] if stated else {"fails": reference.failure}
            if stated and not evidence:
                self.lost.pop(form, None)
                self._kept[form] = dims
                self.sound.append(stated)
                return
            self.lost[form] = evidence
            self.unsound += [stated] if stated else []

    def add_sizes(self, sizes: Sizes) -> None:
        """States other sizes of sound forms, by turns, the smallest first."""
        rows = [
            [size for size in reversed(sizes[form]) if size != dims]
            for form, dims in self._kept.items()
        ]
        for dims in (one for turn in itertools.zip_longest(*rows) for one in turn):
            if len(self.sound) >= MIN_TRAIN or self._reference.late:
                return
            stated = self._reference.train(dims) if dims is not None else None
            known = {one.key for one in self.sound}
            if stated and not self._reference.evidence[stated.key] and stated.key not in known:
                self.sound.append(stated)


def _arguments(problem: RecordedProblem, form: int) -> int:
    call = problem.templates[form].call
    return len(call.args) + len(call.kwargs)


def _note(problem: RecordedProblem, form: int, lost: Mapping[str, str]) -> str:
    why = "; ".join(f"{flag}: {text}" for flag, text in lost.items())
    return f"{LEFT_OUT}: {describe_call(problem.templates[form])[: MAX_NOTE // 2]}: {why}"[
        :MAX_NOTE
    ]
