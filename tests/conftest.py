"""Fixtures that several folders share."""

from tests.executors.cluster import cluster

__all__ = ["cluster"]
