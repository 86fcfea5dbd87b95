"""Fixtures that several folders share."""

from kernel_gym.storage import secret
from tests.executors.cluster import cluster

__all__ = ["cluster"]

secret._of_process = secret.RunSecret(bytes(range(32)))
"""Tests draw the same every time: a failure can be repeated."""
