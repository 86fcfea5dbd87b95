"""The log of compiled kernels in a worker."""

import os

import pytest

from kernel_gym.protocol.compiled import LENGTH, SIZE
from kernel_gym.worker.sim.compiled import CompiledLog

FILES = {"kernel.json": b"{}", "kernel.hsaco": bytes(range(256)) * 40}


@pytest.fixture
def file():
    descriptor = os.memfd_create("log")
    os.ftruncate(descriptor, SIZE)
    yield descriptor
    os.close(descriptor)


def read_again(file):
    log = CompiledLog(file)
    log.read()
    return log


def test_what_was_added_is_read_again(file):
    log = CompiledLog(file)
    log.add("one", FILES)
    log.add("two", {"kernel.json": b"[]"})
    again = read_again(file)
    assert again.files("one") == FILES
    assert again.files("two") == {"kernel.json": b"[]"}
    assert again.files("three") == {}


def test_a_record_goes_behind_those_that_were_read(file):
    CompiledLog(file).add("one", FILES)
    read_again(file).add("two", FILES)
    assert read_again(file).files("one") == read_again(file).files("two") == FILES


def test_half_a_record_does_not_count(file):
    log = CompiledLog(file)
    log.add("one", FILES)
    (used,) = LENGTH.unpack(os.pread(file, LENGTH.size, 0))
    os.pwrite(file, b"half a record", LENGTH.size + used)
    again = read_again(file)
    assert again.files("one") == FILES
    again.add("two", FILES)
    assert read_again(file).files("two") == FILES


def test_a_kernel_that_does_not_fit_is_left_out(file):
    log = CompiledLog(file)
    log.add("one", FILES)
    log.add("two", {"kernel.hsaco": os.urandom(SIZE)})
    log.add("three", FILES)
    again = read_again(file)
    assert again.files("two") == {}
    assert again.files("three") == FILES
