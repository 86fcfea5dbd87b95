"""Where compiled baselines are kept."""

from pathlib import Path

from kernel_gym.devices.cache import cache_folder


def test_the_folder_is_the_users_and_made_when_it_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    assert cache_folder("gpu") == tmp_path / "caches/kernel-gym/gpu"
    assert cache_folder("gpu").is_dir()
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert cache_folder("gpu") == tmp_path / ".cache/kernel-gym/gpu"
