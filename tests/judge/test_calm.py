"""A comparison that was late is made again when there are processors to spare."""

import os

import pytest

from kernel_gym.judge import calm


@pytest.fixture
def load(monkeypatch, tmp_path):
    """The kernel's words, in a file that can be written."""
    file = tmp_path / "loadavg"
    monkeypatch.setattr(calm, "LOAD", file)
    monkeypatch.setattr(calm, "CALM", 0.02)
    monkeypatch.setattr(calm, "LIMIT", 0.2)
    return file


@pytest.mark.parametrize(("wanted", "calm_found"), [(0, True), (1, False)])
def test_more_tasks_than_processors_are_waited_for(load, wanted, calm_found):
    load.write_text(f"9.00 8.00 7.00 {os.cpu_count() + wanted}/1000 4711\n")
    assert calm.wait_for_processors() is calm_found


def test_it_goes_on_when_the_crowd_is_gone(load, monkeypatch):
    monkeypatch.setattr(calm, "LIMIT", 60.0)
    load.write_text("9 9 9 9999/9999 1\n")
    looks = []

    def sleep(seconds):
        looks.append(seconds)
        if len(looks) == 3:
            load.write_text("9 9 9 1/9999 1\n")

    monkeypatch.setattr(calm.time, "sleep", sleep)
    assert calm.wait_for_processors()
    assert len(looks) >= 3


@pytest.mark.parametrize("text", ["", "no such words", None])
def test_a_system_that_does_not_say_is_not_waited_for(load, text):
    if text is not None:
        load.write_text(text)
    assert calm.wait_for_processors()


def test_this_system_says():
    assert calm._running() >= 1
