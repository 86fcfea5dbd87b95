"""Triton's key for its cache: another one for another Triton, without reading its compiler."""

import os
from pathlib import Path

import pytest
import triton
from triton.runtime import cache

from kernel_gym.worker import triton_key


@pytest.fixture
def installation(tmp_path, monkeypatch):
    """A folder that stands for Triton's, with a compiler that nobody can read."""
    for name in ("compiler/compiler.py", "_C/libtriton.so", "backends/amd/driver.c"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    monkeypatch.setattr(triton, "__file__", str(tmp_path / "__init__.py"))
    monkeypatch.setattr(Path, "open", None)
    monkeypatch.setattr("builtins.open", None)
    return tmp_path


def key():
    triton_key.triton_key.cache_clear()
    try:
        return triton_key.triton_key()
    finally:
        triton_key.triton_key.cache_clear()


@pytest.mark.parametrize("name", ["compiler/compiler.py", "_C/libtriton.so"])
def test_a_changed_file_gives_another_key(installation, name):
    before = key()
    assert key() == before
    os.utime(installation / name, ns=(1, 1))
    assert key() != before


def test_a_file_that_compiles_nothing_does_not_count(installation):
    before = key()
    os.utime(installation / "backends/amd/driver.c", ns=(1, 1))
    assert key() == before


def test_triton_asks_for_this_key(monkeypatch):
    for module in (cache, triton_key.autotuner):
        monkeypatch.setattr(module, "triton_key", module.triton_key)
    triton_key.install()
    assert cache.triton_key is triton_key.autotuner.triton_key is triton_key.triton_key
