"""Policies: conversations in, replies out, many at a time.

A policy is a class with one method (:class:`~kernel_gym.training.policies.base.Policy`). To add
one, write the class in a module of its own and name it in
:mod:`kernel_gym.training.policies.make`.
"""

from kernel_gym.training.policies.base import (
    Conversation,
    Message,
    Policy,
    PolicyError,
    Reply,
    Scripted,
)
from kernel_gym.training.policies.make import POLICIES, make_policy
from kernel_gym.training.policies.scripted import Baseline, Examples, Folder, Recorded, Reference
from kernel_gym.training.policies.search import ScheduleSearch

__all__ = [
    "POLICIES",
    "Baseline",
    "Conversation",
    "Examples",
    "Folder",
    "Message",
    "Policy",
    "PolicyError",
    "Recorded",
    "Reference",
    "Reply",
    "ScheduleSearch",
    "Scripted",
    "make_policy",
]
