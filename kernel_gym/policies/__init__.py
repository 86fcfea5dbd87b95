"""Policies: conversations in, replies out, many at a time.

A policy is a subclass of :class:`~kernel_gym.policies.base.Policy` with one method. To give it a
name, decorate it with :func:`~kernel_gym.policies.registry.register_policy`, and add the name and
its module to :mod:`kernel_gym.policies.names`.
"""

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
