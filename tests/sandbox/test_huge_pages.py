"""Pages of the template in huge ones: nothing is lost, and children still write to their own."""

from __future__ import annotations

import os

import pytest

from kernel_gym.sandbox import huge_pages, kernel_calls


def test_contents_stay_and_a_child_writes_to_its_own_pages():
    kept = bytearray(os.urandom(8 << 20))
    before = bytes(kept)
    huge_pages.gather()
    assert kept == before
    pid = os.fork()
    if pid == 0:
        kept[:] = bytes(len(kept))
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert kept == before


def test_pages_are_gathered_once_after_the_forks_of_one_evaluation(monkeypatch):
    gathered = []
    monkeypatch.setattr(huge_pages, "gather", lambda: gathered.append(len(gathered)))
    pages = huge_pages.HugePages()
    for _ in range(huge_pages.FIRST_FORKS):
        pages.before_fork()
    assert not gathered
    for _ in range(20):
        pages.before_fork()
    assert gathered == [0]


def test_a_range_that_is_not_mapped_is_an_error():
    with pytest.raises(OSError, match=r"."):
        kernel_calls.collapse_pages(1 << 22, 1 << 24)
    kernel_calls.collapse_pages(4096, 8192)  # no whole huge page: nothing to do
