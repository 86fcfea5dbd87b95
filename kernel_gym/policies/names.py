"""Names of policies, apart from what makes them, which loads PyTorch."""

from __future__ import annotations

import difflib

from kernel_gym.errors import InputError

_HERE = "kernel_gym.policies"
POLICIES = {
    "baseline": f"{_HERE}.scripted:Baseline",
    "examples": f"{_HERE}.scripted:Examples",
    "folder:PATH": f"{_HERE}.scripted:Folder.at",
    "hf:PATH": f"{_HERE}.huggingface:HuggingFace.at",
    "openai:URL": f"{_HERE}.openai:OpenAI.of",
    "reference": f"{_HERE}.scripted:Reference",
    "reflective:POLICY": f"{_HERE}.reflective:Reflective.over",
    "replay:RUN": f"{_HERE}.scripted:Recorded.of",
    "search": f"{_HERE}.search:ScheduleSearch",
}
"""What makes each policy. The text after the colon, where a name has one, is its argument."""
DRAWING = ("hf", "openai", "reflective")
"""The policies that draw replies, and whose makers take options."""


class PolicyError(InputError, ValueError):
    """A policy cannot be made from its name; the message says why."""


def require_policy(name: str) -> str:
    """Checks the name of a policy.

    Args:
        name: One of :data:`POLICIES`, with a value in place of the capitals.

    Returns:
        The key of :data:`POLICIES` that it stands for.

    Raises:
        PolicyError: The name is unknown; the message has near matches.
    """
    kind, _, argument = name.partition(":")
    for known in POLICIES:
        wanted, _, label = known.partition(":")
        if kind == wanted and bool(argument) == bool(label):
            return known
    near = difflib.get_close_matches(name, POLICIES, n=2, cutoff=0.4)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(POLICIES)}"
    raise PolicyError(f"unknown policy {name!r}; {hint}")
