"""Policies by name: `kind` or `kind:ARGUMENT`."""

from __future__ import annotations

import difflib
from importlib import import_module

from kernel_gym.training.policies.base import Policy, PolicyError

_HERE = "kernel_gym.training.policies"
POLICIES = {
    "baseline": f"{_HERE}.scripted:Baseline",
    "examples": f"{_HERE}.scripted:Examples",
    "folder:PATH": f"{_HERE}.scripted:Folder.at",
    "hf:PATH": f"{_HERE}.huggingface:HuggingFace",
    "openai:URL": f"{_HERE}.openai:OpenAI",
    "reference": f"{_HERE}.scripted:Reference",
    "reflective:POLICY": f"{_HERE}.reflective:Reflective.over",
    "replay:RUN": f"{_HERE}.scripted:Recorded.of",
    "search": f"{_HERE}.search:ScheduleSearch",
}
"""What makes each policy. The text after the colon, where a name has one, is its only argument."""


def make_policy(name: str) -> Policy:
    """The policy of that name.

    Args:
        name: One of :data:`POLICIES`, with a value in place of the capitals.

    Returns:
        The policy.

    Raises:
        PolicyError: The name is unknown, or what it points to cannot be used.
    """
    kind, _, argument = name.partition(":")
    for known, path in POLICIES.items():
        wanted, _, label = known.partition(":")
        if kind == wanted and bool(argument) == bool(label):
            module, _, attribute = path.partition(":")
            maker = import_module(module)
            for part in attribute.split("."):
                maker = getattr(maker, part)
            return maker(argument) if label else maker()  # type: ignore[operator]
    near = difflib.get_close_matches(name, POLICIES, n=2, cutoff=0.4)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(POLICIES)}"
    raise PolicyError(f"unknown policy {name!r}; {hint}")
