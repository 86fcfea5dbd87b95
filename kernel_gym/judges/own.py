"""Our own judge on the corpus: the evaluator, on tasks made from the corpus' problems."""

from __future__ import annotations

import os
from collections.abc import Iterable

from kernel_gym.evaluator import Evaluator
from kernel_gym.judges.adapter import Reading
from kernel_gym.judges.corpus import ITSELF, Candidate
from kernel_gym.judges.own_problem import own_task
from kernel_gym.judges.run import Keep, commit_of_runner, new_verdict
from kernel_gym.judges.verdicts import JudgeAnswer
from kernel_gym.records import Outcome
from kernel_gym.sandbox.processor_times import descendants, processor_seconds
from kernel_gym.storage.secret import PUBLIC

NAME = "kernel-gym"
SEED = 0
"""Draws the unseen sizes and the data, so that a row can be replayed."""


def run_own(chosen: Iterable[Candidate], keep: Keep, device: str = "sim:gfx942") -> None:
    """Evaluates candidates with one evaluator.

    Args:
        chosen: The candidates.
        keep: Takes each row as soon as it is there.
        device: The device.
    """
    commit = commit_of_runner()
    with Evaluator(device=device, seed=SEED, secret=PUBLIC) as evaluator:
        for candidate in chosen:
            begin = _seconds()
            kernel = candidate.source if candidate.kind == ITSELF else None
            evaluation = evaluator.evaluate(own_task(candidate.problem, kernel), candidate.source)
            if evaluation.outcome is Outcome.PASSED:
                answer = JudgeAnswer.ACCEPTED
            elif evaluation.outcome is Outcome.INFRA:
                answer = JudgeAnswer.OPEN
            else:
                answer = JudgeAnswer.REFUSED
            reading = Reading(answer, message=f"{evaluation.outcome}: {evaluation.message}")
            seconds = max(0.0, _seconds() - begin)
            keep(new_verdict(NAME, commit, candidate, reading, evaluation.speedup, seconds))


def _seconds() -> float:
    """Returns the CPU seconds of this process and of all that it started, living or ended."""
    return sum(processor_seconds(process, children=True) for process in descendants(os.getpid()))
