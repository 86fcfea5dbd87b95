"""Names of policies. This module loads nothing heavy, so that typing errors show at once."""

from __future__ import annotations

from kernel_gym.errors import InputError
from kernel_gym.tasks.near_names import unknown

_HERE = "kernel_gym.policies"
POLICIES = {
    "baseline": f"{_HERE}.scripted",
    "examples": f"{_HERE}.scripted",
    "folder:PATH": f"{_HERE}.scripted",
    "hf:PATH": f"{_HERE}.huggingface",
    "inductor": f"{_HERE}.inductor",
    "inductor:MODE": f"{_HERE}.inductor",
    "openai:URL": f"{_HERE}.openai",
    "predictions:PATH": f"{_HERE}.scripted",
    "reference": f"{_HERE}.scripted",
    "reflective:POLICY": f"{_HERE}.reflective",
    "replay:RUN": f"{_HERE}.scripted",
    "search": f"{_HERE}.search",
}
"""The module that registers each policy, by `KIND` or `KIND:ARGUMENT`. The built-in ones are listed
here, since their modules are imported on first use;
:func:`~kernel_gym.policies.registry.register_policy` adds others."""


class PolicyError(InputError, ValueError):
    """A policy cannot be made or cannot continue. The message gives the reason."""


def require_policy(name: str) -> str:
    """Checks the name of a policy.

    Args:
        name: A key of :data:`POLICIES` with a value in place of the capitals.

    Returns:
        That key.

    Raises:
        PolicyError: The name is unknown; the message has near matches.
    """
    kind, _, argument = name.partition(":")
    for known in POLICIES:
        known_kind, _, label = known.partition(":")
        if kind == known_kind and bool(argument) == bool(label):
            return known
    raise PolicyError(unknown("policy", name, POLICIES))
