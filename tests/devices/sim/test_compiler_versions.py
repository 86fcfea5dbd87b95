"""A compiler is asked for its version once, and again when its file changes."""

import json

import pytest

from kernel_gym.devices.sim.compiler_versions import version_text


@pytest.fixture
def compiler(tmp_path, monkeypatch):
    """A program that writes down each call and prints a version."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path, calls = tmp_path / "clang++", tmp_path / "calls"

    def say(version):
        path.write_text(f"#!/bin/sh\necho asked >> {calls}\necho clang version {version}\n")
        path.chmod(0o755)
        return str(path)

    say.calls = lambda: calls.read_text().count("asked")
    say.file = tmp_path / "cache/kernel-gym/compilers/versions.json"
    return say


def test_a_compiler_is_asked_once(compiler):
    path = compiler("19.1.7")
    assert [version_text(path) for _ in range(3)] == ["clang version 19.1.7\n"] * 3
    assert compiler.calls() == 1


def test_a_changed_compiler_is_asked_again(compiler):
    version_text(compiler("19.1.7"))
    assert version_text(compiler("20.1.10")) == "clang version 20.1.10\n"
    assert compiler.calls() == 2


@pytest.mark.parametrize("content", ["", "{", "[]", '{"a": 1}'])
def test_a_broken_file_counts_as_none(compiler, content):
    path = compiler("19.1.7")
    version_text(path)
    compiler.file.write_text(content)
    assert version_text(path) == "clang version 19.1.7\n"
    assert compiler.calls() == 2
    assert list(json.loads(compiler.file.read_text()).values()) == ["clang version 19.1.7\n"]
