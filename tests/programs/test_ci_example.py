"""The workflow for GitHub Actions: the page shows the file, and its command works."""

import re
import shlex
from pathlib import Path

from tests.programs.running import KERNEL, RACE, run, write

ROOT = Path(__file__).parents[2]
WORKFLOW = (ROOT / "examples" / "ci" / "rocm-kernels.yml").read_text()


def command():
    line = re.search(r"- run: kernel-gym sim (.*)", WORKFLOW).group(1)
    return shlex.split(line)


def test_the_page_shows_the_file():
    assert WORKFLOW in (ROOT / "docs" / "programs.md").read_text()


def test_its_command_fails_for_a_race_and_only_then(tmp_path):
    tests = tmp_path / "tests"
    tests.mkdir()
    write(tmp_path, "kernels.py", KERNEL)
    text = "import kernels, torch\n\ndef test_copy():\n    x = torch.ones(9, device='cuda')\n"
    text += "    out = torch.empty_like(x)\n    kernels.copy[(1,)](x, out, 9, BLOCK=16)\n"
    write(tests, "test_kernels.py", text + "    assert out.sum() == 9\n")
    good = run(tmp_path, *command(), PYTHONPATH=str(tmp_path))
    assert good.returncode == 0, good.stdout + good.stderr
    race = RACE.partition("\nout =")[0] + "\ndef test_race():\n    out = torch.empty(1, dtype="
    write(tests, "test_race.py", race + "torch.int32, device='cuda')\n    race[(4,)](out)\n")
    words = [word.replace("simulated", "again") for word in command()]
    bad = run(tmp_path, *words, PYTHONPATH=str(tmp_path))
    assert bad.returncode == 121, bad.stdout + bad.stderr
    assert (tmp_path / "again" / "index.html").exists()
