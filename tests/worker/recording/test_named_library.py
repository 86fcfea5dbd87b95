"""A library that has a name only: others that ask for this name are satisfied."""

from __future__ import annotations

import ctypes
import uuid

import pytest

from kernel_gym.worker.recording.named_library import named_library


def test_the_name_is_known_after_the_library_was_loaded(tmp_path):
    name = f"lib{uuid.uuid4().hex}.so.7"
    with pytest.raises(OSError, match="cannot open"):
        ctypes.CDLL(name)
    (tmp_path / "file").write_bytes(named_library(name))
    loaded = ctypes.CDLL(str(tmp_path / "file"))
    assert ctypes.CDLL(name)._handle == loaded._handle
