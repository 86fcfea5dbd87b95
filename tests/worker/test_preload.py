"""Workers find the objects that the template has built."""

import subprocess
import sys

from kernel_gym.worker import preload as warm


def test_a_worker_finds_what_was_built_and_keeps_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(warm, "_driver_files", {"KEY/driver.so": b"built", "OTHER/x.so": b"x"})
    (tmp_path / "cache" / "KEY").mkdir(parents=True)
    (tmp_path / "cache" / "KEY" / "driver.so").write_bytes(b"own")
    warm.seed_cache()
    assert (tmp_path / "cache" / "KEY" / "driver.so").read_bytes() == b"own"
    assert (tmp_path / "cache" / "OTHER" / "x.so").read_bytes() == b"x"


def test_meta_operators_of_a_worker_import_nothing_new():
    program = """
import sys
from kernel_gym.worker import preload
preload._import_for_meta_operators()
before = set(sys.modules)
preload._import_for_meta_operators()
assert "torch._decomp" in before
print(sorted(set(sys.modules) - before))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr
