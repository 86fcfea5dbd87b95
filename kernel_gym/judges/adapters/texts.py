"""Texts that several adapters need: a candidate as a module of another form."""

from __future__ import annotations

from kernel_gym.judges.corpus import Candidate

SHOWN = (64, 256)
"""The shape of a judge that has one."""
SHAPES = (SHOWN, (3, 7), (33, 100), (5, 400))
"""The shapes of a judge that has several, as those of the oracles."""


def names_of(candidate: Candidate) -> str:
    """Returns the arguments, as they stand in a call."""
    return ", ".join(candidate.problem.arguments)


def reference_model(candidate: Candidate) -> str:
    """Returns the problem as a module with `Model`, `get_inputs` and `get_init_inputs`."""
    names, number = names_of(candidate), len(candidate.problem.arguments)
    return f"""{candidate.problem.source}

class Model(torch.nn.Module):
    def forward(self, {names}):
        return reference({names})


def get_inputs():
    return [torch.randn{SHOWN} for _ in range({number})]


def get_init_inputs():
    return []
"""


def candidate_model(candidate: Candidate) -> str:
    """Returns the candidate as a module with `ModelNew`."""
    names = names_of(candidate)
    return f"""{candidate.source}

class ModelNew(torch.nn.Module):
    def forward(self, {names}):
        return run({names})
"""
