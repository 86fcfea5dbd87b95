"""Policies by name: `kind` or `kind:ARGUMENT`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from kernel_gym.policies.base import Policy
from kernel_gym.policies.names import DRAWING, POLICIES, require_policy
from kernel_gym.policies.options import Options


def make_policy(name: str, options: Options | None = None) -> Policy:
    """The policy of that name.

    Args:
        name: One of :data:`POLICIES`, with a value in place of the capitals.
        options: How replies are asked for, where not as usual.

    Returns:
        The policy.

    Raises:
        PolicyError: The name is unknown, what it points to cannot be used, or the policy does not
            have an option that is given.
    """
    path = POLICIES[require_policy(name)]
    kind, _, argument = name.partition(":")
    options = options or Options()
    module, _, attribute = path.partition(":")
    maker: Any = import_module(module)
    for part in attribute.split("."):
        maker = getattr(maker, part)
    if kind in DRAWING:
        return maker(argument, options)
    options.none(kind)
    return maker(argument) if argument else maker()
