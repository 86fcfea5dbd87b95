"""The main loop of a recorder: what it makes ready for a source."""

from __future__ import annotations

import pytest

from kernel_gym.sandbox.failures import BuildError
from kernel_gym.worker.recording.main import RecordingWorker


@pytest.mark.parametrize(("package", "name"), [("flydsl", "FlyDSL"), ("tilelang", "TileLang")])
def test_a_language_for_amd_is_refused_on_a_gpu_of_nvidia(package, name):
    recorder = object.__new__(RecordingWorker)
    recorder._for_amd, recorder._embedded = False, None
    recorder._install_embedded("import triton\n")
    with pytest.raises(BuildError, match=f"candidates in {name} are for AMD's GPUs"):
        recorder._install_embedded(f"import {package}\n")
