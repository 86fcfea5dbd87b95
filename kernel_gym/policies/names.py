"""Names of policies, apart from what makes them, which loads PyTorch."""

from __future__ import annotations

from kernel_gym.tasks.near_names import unknown

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


class PolicyError(ValueError):
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
    raise PolicyError(unknown("policy", name, POLICIES))
