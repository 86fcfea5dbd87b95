"""Policies: conversations in, replies out, many at a time.

A policy is a class with one method (:class:`~kernel_gym.training.policies.base.Policy`). To add
one, write the class in a module of its own and name it in
:mod:`kernel_gym.training.policy_names`.
"""

from kernel_gym.training.policies.base import (
    Conversation,
    Message,
    Policy,
    PolicyError,
    Reply,
    Response,
    Scripted,
    Stop,
)
from kernel_gym.training.policies.make import make_policy
from kernel_gym.training.policies.options import Options
from kernel_gym.training.policies.scripted import Baseline, Examples, Folder, Recorded, Reference
from kernel_gym.training.policies.search import ScheduleSearch
from kernel_gym.training.policy_names import POLICIES

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
