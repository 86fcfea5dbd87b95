"""The files of this package that a worker cannot read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_gym.devices.hip_build import BuildRecipe, BuildResult, compile_source
from kernel_gym.evaluator import Evaluator
from kernel_gym.sandbox import landlock, view
from kernel_gym.tasks import get_task

LOOK = """
import posix, json

def readable(path):
    try:
        posix.close(posix.open(path, posix.O_RDONLY))
    except OSError:
        return False
    return True

def names_in(path):
    try:
        return posix.listdir(path)
    except OSError:
        return []

def softmax(x):
    names = [names_in(path) for path in {folders}]
    raise RuntimeError(json.dumps([names, [readable(path) for path in {files}]]))
"""
RESTRICT = """
import json, os, sys
from kernel_gym.sandbox import kernel_calls, landlock
folder, sealed = sys.argv[1:]
kernel_calls.forbid_new_privileges()
landlock.restrict([folder], [], (sealed,))
def readable(path):
    try:
        open(path).close()
    except PermissionError:
        return False
    return True
paths = ["a.txt", "inner/b.txt", "inner/sealed/c.txt", "inner/sealed/deep/d.txt"]
print(json.dumps([readable(os.path.join(folder, path)) for path in paths]))
"""


def _any_file(folder):
    return str(next(path for path in Path(folder).rglob("*") if path.is_file()))


def test_a_worker_finds_the_suite_and_the_examples_empty():
    folders = [path for path in view.SEALED if os.path.isdir(path)]
    assert {Path(path).name for path in folders} >= {"suite", "examples"}
    files = [_any_file(folder) for folder in folders]
    source = LOOK.format(folders=folders, files=[*files, view.__file__])
    with Evaluator(device="sim:gfx942", seed=0) as evaluator:
        evaluation = evaluator.evaluate(get_task("triton2triton/softmax"), source)
    names, readable = json.loads(evaluation.message.removeprefix("RuntimeError: "))
    assert names == [[] for _ in folders]
    assert readable == [False for _ in files] + [True]


def test_landlock_alone_refuses_to_read_sealed_folders(tmp_path):
    try:
        landlock.version()
    except OSError:
        pytest.skip("this kernel has no Landlock")
    deep = tmp_path / "inner" / "sealed" / "deep"
    deep.mkdir(parents=True)
    for path in ("a.txt", "inner/b.txt", "inner/sealed/c.txt", "inner/sealed/deep/d.txt"):
        (tmp_path / path).write_text(path)
    done = subprocess.run(
        [sys.executable, "-c", RESTRICT, str(tmp_path), str(tmp_path / "inner" / "sealed")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert json.loads(done.stdout) == [True, True, False, False], done.stderr


def test_the_view_of_a_compiler_shows_folders_whatever_their_order_and_chains_of_links(tmp_path):
    kit = tmp_path / "kit-13.0"
    (kit / "lib" / "stubs").mkdir(parents=True)
    (kit / "lib" / "library.txt").write_text("library\n")
    (kit / "lib" / "stubs" / "stub.txt").write_text("stub\n")
    tmp_path.joinpath("alternative").symlink_to(kit)
    link = tmp_path / "kit"
    link.symlink_to(tmp_path / "alternative")
    for folder in (tmp_path, *tmp_path.parents[:-2]):
        folder.chmod(0o755)

    for orders in ([f"{link}/lib/stubs", f"{link}/lib"], [f"{link}/lib/stubs", str(link)]):
        read = f"cat {link}/lib/library.txt {link}/lib/stubs/stub.txt > all.txt"
        recipe = BuildRecipe({}, [["/bin/sh", "-c", read]], ["all.txt"], orders)
        built = compile_source(recipe, 20)
        assert isinstance(built, BuildResult), built
        assert built.results == (b"library\nstub\n",)
