"""Loads a traced problem from a text."""

from __future__ import annotations

import importlib.util

from kernel_gym.imports.traced.problem import TracedProblem


def load_text(name: str, text: str) -> TracedProblem:
    """Returns the problem of a text that `file_text` wrote. It only calls operators of PyTorch.

    Args:
        name: A name for messages.
        text: The text of a `problem.py`.
    """
    spec = importlib.util.spec_from_loader("kernel_gym.imports.traced.loaded", loader=None)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    exec(compile(text, f"<problem {name}>", "exec", dont_inherit=True), module.__dict__)
    module.PROBLEM.__class__.text = text
    return module.PROBLEM
