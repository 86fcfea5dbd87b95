"""Files of records: reading after a crash at any byte."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from kernel_gym.records import Record
from kernel_gym.storage.json_lines import (
    StoreError,
    append_line,
    drop_cut_off,
    read_lines,
    write_whole,
)


class Named(Record):
    name: str


RECORDS = [Named(name="one"), Named(name="two\u2028lines, größer")]


@pytest.fixture
def path(tmp_path):
    for record in RECORDS:
        append_line(tmp_path / "names.jsonl", record)
    return tmp_path / "names.jsonl"


def test_what_was_written_is_read(path):
    assert read_lines(path, Named) == RECORDS
    assert read_lines(path.with_name("none"), Named) == []


def test_a_file_cut_off_at_any_byte_keeps_its_whole_lines_and_can_be_added_to(path):
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        left = read_lines(path, Named)
        assert left == RECORDS[: whole[:length].count(b"\n")]
        drop_cut_off(path)
        append_line(path, RECORDS[1])
        assert read_lines(path, Named) == [*left, RECORDS[1]]


def test_a_whole_file_and_none_are_left_alone(path):
    whole = path.read_bytes()
    drop_cut_off(path)
    drop_cut_off(path.with_name("none"))
    assert path.read_bytes() == whole
    assert not path.with_name("none").exists()


@pytest.mark.parametrize("line", [b"{}", b"\xff", b'{"name": "\xc3"}', b""])
def test_a_broken_line_is_named(path, line):
    path.write_bytes(path.read_bytes() + line + b"\n")
    with pytest.raises(StoreError, match=r"names.jsonl, line 3: .*found"):
        read_lines(path, Named)


def test_writers_at_the_same_time_leave_the_whole_text_of_one(tmp_path, monkeypatch):
    """Both have written their draft before either replaces the file."""
    path = tmp_path / "config.json"
    texts = ["a" * 100_000, "b" * 50_000]
    both, replace = threading.Barrier(2, timeout=60), os.replace

    def replace_when_both_are_written(source, target):
        both.wait()
        replace(source, target)

    monkeypatch.setattr(os, "replace", replace_when_both_are_written)
    with ThreadPoolExecutor(2) as writers:
        list(writers.map(write_whole, [path, path], texts))
    assert path.read_text() in texts
    assert list(tmp_path.iterdir()) == [path]


def test_a_draft_that_cannot_replace_its_file_is_removed(tmp_path):
    (tmp_path / "config.json").mkdir()
    with pytest.raises(OSError, match=r"config\.json"):
        write_whole(tmp_path / "config.json", "text")
    assert list(tmp_path.iterdir()) == [tmp_path / "config.json"]
