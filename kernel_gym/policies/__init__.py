"""Policies: conversations in, replies out, many at a time.

A policy is a class with one method (:class:`~kernel_gym.policies.base.Policy`). To add
one, write the class in a module of its own and name it in
:mod:`kernel_gym.policies.names`.
"""

from kernel_gym.policies.base import (
    Conversation,
    Message,
    Policy,
    PolicyError,
    Reply,
    Response,
    Scripted,
    Stop,
)
from kernel_gym.policies.make import make_policy
from kernel_gym.policies.names import POLICIES
from kernel_gym.policies.options import Options
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
    "ScheduleSearch",
    "Scripted",
    "Stop",
    "make_policy",
]
