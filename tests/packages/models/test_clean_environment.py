"""The documented sequence: a package in an environment without kernel-gym runs a small Llama."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.test_architecture import ROOT
from tests.test_docs import blocks

EXAMPLE = ROOT / "kernel_gym/policies/examples/torch2triton/add_rms_norm/3_good.py"
VENV = "python3 -m venv clean\n"
ABSENT = 'clean/bin/python -c "import kernel_gym" 2>&1 || true\n'


@pytest.fixture
def libraries(tmp_path):
    """A folder with the installed libraries, in place of what pip would load.

    kernel-gym is left out, and Triton, which PyTorch for CPUs does not bring.
    """
    folder = tmp_path / "libraries"
    folder.mkdir()
    for path in Path(torch.__file__).parents[1].iterdir():
        if not path.name.startswith(("kernel_gym", "__editable__", "triton")):
            (folder / path.name).symlink_to(path)
    return folder


def play(text, folder):
    """Runs a block of the page in a folder, without a network, and returns what it prints."""
    shell = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "EXAMPLES": str(ROOT / "examples"),
        "PIP_NO_INDEX": "1",
    }
    shell.pop("PYTHONPATH", None)
    command = ["bash", "-euo", "pipefail", "-c", text]
    done = subprocess.run(command, cwd=folder, env=shell, check=True, stdout=subprocess.PIPE)
    return done.stdout.decode()


@pytest.mark.sweep
def test_the_documented_environment_runs_a_llama_with_the_package(tmp_path, write, libraries):
    write(tmp_path / "add-rms-norm", "torch2triton/add_rms_norm", EXAMPLE.read_text())
    (text,) = [text for _, text in blocks("docs/deploy.md") if text.startswith(VENV)]
    play(VENV, tmp_path)
    (site,) = (tmp_path / "clean/lib").glob("python3*/site-packages")
    (site / "libraries.pth").write_text(f"import sys; sys.path.insert(0, {str(libraries)!r})\n")
    printed = play(text.removeprefix(VENV) + ABSENT, tmp_path)
    assert "add_rms_norm on cpu: plain PyTorch: x is on cpu\n" in printed
    assert "tokens: 64 of 64 equal in 2 sequences\n" in printed
    assert "throughput: " in printed
    assert "\nparity: yes\n" in printed
    assert printed.endswith("No module named 'kernel_gym'\n")
