"""Fixtures that several folders share."""

from collections import Counter
from pathlib import Path

import pytest

from kernel_gym.storage import secret
from tests.browser import browser
from tests.executors.cluster import cluster

__all__ = ["browser", "cluster"]

secret._of_process = secret.RunSecret(bytes(range(32)))
"""Tests draw the same every time: a failure can be repeated."""


LEFT = frozenset((Path(__file__).parent / "left_to_the_sweep.txt").read_text("utf-8").split("\n"))
"""Long cases whose near relatives every run plays."""


def pytest_itemcollected(item):
    """Marks the listed cases."""
    if item.nodeid in LEFT:
        item.add_marker("sweep")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Puts files with slow tests first: at the end, one would keep a single core busy."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    sizes = Counter(item.path for item in items)
    items.sort(key=lambda item: (item.path not in slow, -sizes[item.path]))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    """Escapes lone surrogates in captured text, which processes of the tests cannot send."""
    report = yield
    report.sections = [
        (name, text.encode("utf-8", "backslashreplace").decode()) for name, text in report.sections
    ]
    return report
