"""Loading candidates: what a recorder asks for is built, and nothing else."""

from __future__ import annotations

import pytest

from kernel_gym.devices import candidate_loading
from kernel_gym.devices.base import Failed, FailureKind
from kernel_gym.devices.built_sources import BuildResult
from kernel_gym.devices.candidate_loading import CandidateLoading
from kernel_gym.sandbox.channel import ChannelMessage
from kernel_gym.tasks import get_task

IN_TILELANG, IN_TRITON = "import tilelang\n", "import triton\n"


class AskingRecorder:
    """A recorder that asks for builds, the same or without an end.

    Args:
        sources: What it asks for. It asks for the last one again and again.
    """

    def __init__(self, *sources):
        self._sources = list(sources)
        self.told = []

    def exchange(self, request, limit):
        self.told.append(request)
        source = self._sources.pop(0) if len(self._sources) > 1 else self._sources[0]
        asked = {} if source is None else {"ask": "build", "source": source}
        return ChannelMessage(asked, ())

    def fail(self, failed):
        return failed


@pytest.fixture(autouse=True)
def build(monkeypatch):
    def built(source, *others):
        if source == "wrong":
            return Failed(FailureKind.COMPILE, "an error")
        return BuildResult((), (source.encode(), b"library"))

    monkeypatch.setattr(candidate_loading, "compile_tilelang", built)


def asked(recorder, source=IN_TILELANG):
    task = get_task("triton2triton/softmax")
    loading = CandidateLoading(task, source, recorder, "gfx942", 1.0, None, None)
    return loading.ask(None, 1.0)


def test_a_recorder_gets_each_library_that_it_asks_for():
    recorder = AskingRecorder("one", "two", None)
    assert asked(recorder).header == {}
    assert [told.assembler for told in recorder.told[1:]] == [b"one", b"two"]


def test_a_recorder_that_asks_without_end_is_stopped():
    recorder = AskingRecorder("again")
    failed = asked(recorder)
    assert isinstance(failed, Failed)
    assert failed.message == "a call builds more than 64 kernels"
    assert len(recorder.told) == 65


@pytest.mark.parametrize("source", [7, ["text"], {"a": 1}])
def test_a_source_that_is_no_text_is_not_built(source):
    failed = asked(AskingRecorder(source))
    assert (failed.kind, failed.message) == (FailureKind.COMPILE, "a kernel has no source to build")


def test_a_build_that_fails_is_the_candidates_failure():
    recorder = AskingRecorder("wrong")
    assert asked(recorder) == Failed(FailureKind.COMPILE, "an error")
    assert len(recorder.told) == 1


def test_nothing_is_built_for_a_candidate_in_another_language():
    recorder = AskingRecorder("one")
    assert asked(recorder, IN_TRITON).header == {"ask": "build", "source": "one"}
    assert recorder.told == [None]
