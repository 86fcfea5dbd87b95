"""Workers find the objects that the template has built."""

from kernel_gym.worker import preload as warm


def test_a_worker_finds_what_was_built_and_keeps_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(warm, "_driver_files", {"KEY/driver.so": b"built", "OTHER/x.so": b"x"})
    (tmp_path / "cache" / "KEY").mkdir(parents=True)
    (tmp_path / "cache" / "KEY" / "driver.so").write_bytes(b"own")
    warm.seed_cache()
    assert (tmp_path / "cache" / "KEY" / "driver.so").read_bytes() == b"own"
    assert (tmp_path / "cache" / "OTHER" / "x.so").read_bytes() == b"x"
