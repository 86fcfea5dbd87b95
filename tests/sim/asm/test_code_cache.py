"""Code objects of earlier processes: kept by text and version, and bounded."""

from __future__ import annotations

import pytest

from kernel_gym.sim.asm.assembler import Assembler
from kernel_gym.sim.asm.code_cache import MAX_ENTRY_BYTES, CodeCache
from kernel_gym.sim.asm.errors import AsmError
from tests.sim.support import kernel_text


def test_an_assembler_takes_what_another_has_assembled(tmp_path):
    text = kernel_text("\ts_nop 3")
    code = Assembler(tmp_path).code_object(text)
    second = Assembler(tmp_path)
    assert second.code_object(text) == code
    assert second._child == 0  # it has not started its process
    assert second.code_object(kernel_text("\ts_nop 4")) != code


def test_what_does_not_assemble_is_not_kept(tmp_path):
    for _ in range(2):
        with pytest.raises(AsmError, match="invalid instruction"):
            Assembler(tmp_path).code_object(kernel_text("\tv_bogus v0"))
    assert not list(tmp_path.iterdir())


def test_another_version_and_another_text_at_one_place_count_as_absent(tmp_path):
    cache = CodeCache(tmp_path, "1")
    cache.put(b"text", b"code")
    assert cache.get(b"text") == b"code"
    assert CodeCache(tmp_path, "2").get(b"text") is None
    (place,) = tmp_path.iterdir()
    place.write_bytes(bytes(32) + b"other")
    assert cache.get(b"text") is None
    place.write_bytes(b"cut")
    assert cache.get(b"text") is None


def test_places_are_bounded(tmp_path):
    cache = CodeCache(tmp_path, "1")
    for number in range(5000):
        cache.put(str(number).encode(), b"code")
    assert len(list(tmp_path.iterdir())) <= 4096
    cache.put(b"large", bytes(MAX_ENTRY_BYTES + 1))
    assert cache.get(b"large") is None


def test_a_folder_that_is_gone_is_no_fault(tmp_path):
    cache = CodeCache(tmp_path / "gone", "1")
    cache.put(b"text", b"code")
    assert cache.get(b"text") is None
