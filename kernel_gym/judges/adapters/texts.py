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


def reference_model(candidate: Candidate, name: str = "Model") -> str:
    """Returns the problem as a module with a PyTorch class and functions that make its inputs."""
    number = len(candidate.problem.arguments)
    return f"""{module_with_class(candidate.problem.source, "reference", candidate, name)}

def get_inputs():
    return [torch.randn{SHOWN} for _ in range({number})]


def get_init_inputs():
    return []
"""


def module_with_class(source: str, function: str, candidate: Candidate, name: str) -> str:
    """Returns a source and a class of PyTorch whose `forward` calls a function of it."""
    names = names_of(candidate)
    return f"""{source}

class {name}(torch.nn.Module):
    def forward(self, {names}):
        return {function}({names})
"""


def module_with_function(source: str, function: str, candidate: Candidate, name: str) -> str:
    """Returns a source and a function of another name that calls one of it."""
    names = names_of(candidate)
    return f"{source}\n\ndef {name}({names}):\n    return {function}({names})\n"


def with_test(source: str, test: str) -> str:
    """Returns a source and its test as the files of TritonBench's family have them."""
    return f"{source}\n\n{'#' * 146}\n\n{test}"
