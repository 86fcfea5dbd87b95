"""Small programs, and a function that runs `kernel-gym sim -- COMMAND` as a process."""

import json
import os
import subprocess
import sys
from pathlib import Path

KERNEL = """
import sys
import torch, triton, triton.language as tl

@triton.jit
def copy(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)
"""
COPY = f"""{KERNEL}
x = torch.randn(1000, device="cuda")
out = torch.empty_like(x)
copy[(4,)](x, out, 1000, BLOCK=256)
torch.testing.assert_close(out, x)
print("copied")
"""
FAULT = f"""{KERNEL}
x = torch.randn(200, device="cuda")
try:
    copy[(1,)](x, torch.empty(256, device="cuda"), 256, BLOCK=256)
except Exception:
    print("went on")
"""
RACE = """
import torch, triton, triton.language as tl

@triton.jit
def race(out):
    tl.store(out, tl.program_id(0))

out = torch.empty(1, dtype=torch.int32, device="cuda")
race[(4,)](out)
print("left", int(out) in range(4))
"""


def run(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess:
    """Runs `kernel-gym sim` with these words in a folder."""
    command = [sys.executable, "-m", "kernel_gym", "sim", *words]
    return subprocess.run(
        command, cwd=folder, env=os.environ | variables, capture_output=True, text=True
    )


def run_json(folder: Path, *words: str) -> tuple[int, dict, str]:
    """Returns the exit code, the JSON and what the command printed."""
    done = run(folder, "--json", *words)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout), done.stderr


def write(folder: Path, name: str, text: str) -> Path:
    """Writes a file and returns it."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path
