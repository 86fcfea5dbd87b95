"""Policies: conversations in, replies out, many at a time.

A policy is a subclass of :class:`~kernel_gym.policies.base.Policy` with one method. To give it a
name, decorate it with :func:`~kernel_gym.policies.registry.register_policy`, and add the name and
its module to :mod:`kernel_gym.policies.names`.

Names are imported on first use, because most of them load PyTorch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernel_gym.policies.base import (
        Conversation,
        Message,
        Policy,
        PolicyError,
        Reply,
        Response,
        Run,
        Scripted,
        Stop,
    )
    from kernel_gym.policies.evaluate import evaluate_policy
    from kernel_gym.policies.names import POLICIES
    from kernel_gym.policies.options import Options
    from kernel_gym.policies.registry import make_policy, register_policy
    from kernel_gym.policies.scripted import Baseline, Examples, Folder, Recorded, Reference
    from kernel_gym.policies.search import ScheduleSearch

__all__ = [
    "POLICIES",
    "Baseline",
    "Conversation",
    "Examples",
    "Folder",
    "Message",
    "Options",
    "Policy",
    "PolicyError",
    "Recorded",
    "Reference",
    "Reply",
    "Response",
    "Run",
    "ScheduleSearch",
    "Scripted",
    "Stop",
    "evaluate_policy",
    "make_policy",
    "register_policy",
]

_NAMES = {
    "base": "Conversation Message Policy PolicyError Reply Response Run Scripted Stop",
    "evaluate": "evaluate_policy",
    "names": "POLICIES",
    "options": "Options",
    "registry": "make_policy register_policy",
    "scripted": "Baseline Examples Folder Recorded Reference",
    "search": "ScheduleSearch",
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Imports a public name on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
