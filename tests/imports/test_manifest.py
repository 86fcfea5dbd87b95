"""Manifests, names of imported tasks, and checkouts that changed."""

import subprocess

import pytest

from kernel_gym.imports.checkout import commit_of, licence_of
from kernel_gym.imports.manifest import (
    DeviceVerdict,
    ImportStatus,
    Manifest,
    ManifestEntry,
    ManifestError,
    read_manifest,
    write_manifest,
)
from kernel_gym.imports.readers import known
from kernel_gym.imports.readers.base import CheckoutError, hashes, read_text
from kernel_gym.imports.readers.known import readers_of
from kernel_gym.tasks import UnknownName, get_task
from kernel_gym.tasks.names import IMPORTS, Mode, imported_ids, is_task, require_suite, require_task


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(IMPORTS, str(tmp_path / "imports"))
    return tmp_path / "imports"


def manifest(checkout, **verdicts):
    (checkout / "one.py").write_text("x = 1\n")
    entry = ManifestEntry(
        name="a/one",
        category="Math",
        mode=Mode.TRITON2TRITON,
        files=hashes(checkout, ("one.py",)),
        verdicts={name: DeviceVerdict(status=status) for name, status in verdicts.items()},
    )
    other = ManifestEntry(name="two", category="Math", reason="no tests")
    tasks = {"a/one": entry, "two": other}
    return Manifest(suite="tiny-s", checkout=str(checkout), commit="", licence="MIT", tasks=tasks)


def test_a_manifest_is_read_as_it_was_written(folder, tmp_path):
    written = manifest(tmp_path, sim=ImportStatus.FLAGGED)
    write_manifest(written)
    assert read_manifest("tiny-s") == written
    assert imported_ids() == ("tiny-s/a/one", "tiny-s/two")


def test_the_best_status_counts_when_no_device_is_named(tmp_path):
    entry = manifest(tmp_path, a=ImportStatus.UNSUPPORTED, b=ImportStatus.ADMITTED).tasks["a/one"]
    assert entry.status() is ImportStatus.ADMITTED
    assert entry.status("a") is ImportStatus.UNSUPPORTED
    assert entry.status("c") is None


@pytest.mark.parametrize("text", ["", "{", '{"version": 1}', '{"tasks": 3}'])
def test_a_malformed_manifest_is_named_and_lists_no_tasks(folder, text):
    folder.mkdir()
    (folder / "tiny-s.json").write_text(text)
    assert imported_ids() == ()
    with pytest.raises(ManifestError, match=r"tiny-s\.json.*import again"):
        read_manifest("tiny-s")


def test_names_of_imported_tasks_are_known(folder, tmp_path):
    write_manifest(manifest(tmp_path))
    require_suite("tiny-s")
    require_task("tiny-s/a/one")
    assert is_task("tiny-s/two")
    assert not is_task("other/two")
    with pytest.raises(UnknownName, match="tiny-s/a/one"):
        require_task("tiny-s/a/on")


def test_a_changed_checkout_is_noticed(folder, tmp_path):
    write_manifest(manifest(tmp_path))
    (tmp_path / "one.py").write_text("x = 2\n")
    with pytest.raises(ValueError, match=r"one\.py .* has changed since"):
        get_task("tiny-s/a/one")


def test_an_unsupported_task_says_why(folder, tmp_path):
    write_manifest(manifest(tmp_path))
    with pytest.raises(Exception, match="tiny-s/two: unsupported: no tests"):
        get_task("tiny-s/two")


def test_no_file_outside_of_the_checkout_is_read(tmp_path):
    (tmp_path / "inside").mkdir()
    (tmp_path / "secret").write_text("x")
    with pytest.raises(CheckoutError, match="leads out"):
        read_text(tmp_path / "inside", "../secret")


def test_a_pointer_of_git_lfs_is_named(tmp_path):
    (tmp_path / "data.json").write_bytes(b"version https://git-lfs.github.com/spec/v1\noid x\n")
    with pytest.raises(CheckoutError, match=r"data\.json: found a Git LFS pointer"):
        read_text(tmp_path, "data.json")


def test_what_is_no_checkout_is_refused(tmp_path):
    with pytest.raises(CheckoutError, match="found no suite"):
        readers_of(tmp_path)
    with pytest.raises(CheckoutError, match="found no folder"):
        readers_of(tmp_path / "missing")


def test_names_of_suites_are_names_of_files():
    for name in known.readers():
        assert name.replace("-", "").isalnum()
        assert name == name.lower()


def test_the_commit_of_a_working_tree_is_read_without_git(tmp_path):
    def git(*words):
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words]
        return subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)

    assert commit_of(tmp_path) == ""
    (tmp_path / "LICENSE").write_text("\nApache License\nVersion 2\n")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "x")
    head = git("rev-parse", "HEAD").stdout.strip()
    assert commit_of(tmp_path) == head
    git("pack-refs", "--all")
    assert commit_of(tmp_path) == head
    assert licence_of(tmp_path) == "Apache License"
