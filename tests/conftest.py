"""Fixtures that several folders share."""

import pytest

from kernel_gym.storage import secret
from tests.executors.cluster import cluster

__all__ = ["cluster"]

secret._of_process = secret.RunSecret(bytes(range(32)))
"""Tests draw the same every time: a failure can be repeated."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    """Escapes lone surrogates in captured text, which processes of the tests cannot send."""
    report = yield
    report.sections = [
        (name, text.encode("utf-8", "backslashreplace").decode()) for name, text in report.sections
    ]
    return report
