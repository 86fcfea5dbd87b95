"""The action for GitHub and the workflow that uses it: what they run works."""

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from tests.programs.running import KERNEL, RACE, write

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
WORKFLOW = (ROOT / "examples" / "ci" / "rocm-kernels.yml").read_text()
KNOWN = (
    '[[suppress]]\nkernel = "race"\nsource = "tests/test_race.py"\nreason = "any value will do"\n'
)


def step_of_workflow():
    """The step that uses the action."""
    (job,) = yaml.safe_load(WORKFLOW)["jobs"].values()
    (step,) = (step for step in job["steps"] if "kernel-gym" in step.get("uses", ""))
    return step


def run_action(folder, **inputs):
    """Runs the action's own command as GitHub does, with the workflow's inputs and others."""
    (step,) = (step for step in ACTION["runs"]["steps"] if "COMMAND" in step.get("env", {}))
    values = {name: value.get("default") for name, value in ACTION["inputs"].items()}
    values |= step_of_workflow()["with"] | inputs
    given = {
        variable: values[text.removeprefix("${{ inputs.").removesuffix(" }}")]
        for variable, text in step["env"].items()
    }
    own = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": str(folder)}
    script = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    return subprocess.run(
        script, cwd=folder, env=os.environ | own | given, capture_output=True, text=True
    )


def outcomes(folder):
    """The elements of all test cases of the report, without messages of passed ones."""
    cases = ElementTree.parse(folder / "simulated" / "audit.xml").getroot().iter("testcase")
    return [child.tag for case in cases for child in case]


def test_the_page_shows_the_file():
    assert WORKFLOW in (ROOT / "docs" / "programs.md").read_text()


def test_the_workflow_gives_the_inputs_that_the_action_takes():
    given = step_of_workflow()["with"]
    required = {name for name, value in ACTION["inputs"].items() if value.get("required")}
    assert required <= given.keys() <= ACTION["inputs"].keys()


@pytest.mark.slow
def test_its_command_fails_for_a_race_unless_it_is_suppressed(tmp_path):
    tests = tmp_path / "tests"
    tests.mkdir()
    write(tmp_path, "kernels.py", KERNEL)
    text = "import kernels, torch\n\ndef test_copy():\n    x = torch.ones(9, device='cuda')\n"
    text += "    out = torch.empty_like(x)\n    kernels.copy[(1,)](x, out, 9, BLOCK=16)\n"
    write(tests, "test_kernels.py", text + "    assert out.sum() == 9\n")
    race = RACE.partition("\nout =")[0] + "\ndef test_race():\n    out = torch.empty(1, dtype="
    write(tests, "test_race.py", race + "torch.int32, device='cuda')\n    race[(4,)](out)\n")
    bad = run_action(tmp_path)
    assert bad.returncode == 121, bad.stdout + bad.stderr
    assert outcomes(tmp_path) == ["failure"]
    assert (tmp_path / "simulated" / "index.html").exists()
    (tmp_path / "simulated").rename(tmp_path / "raced")
    write(tmp_path, "known.toml", KNOWN)
    known = run_action(tmp_path, suppressions="known.toml")
    assert known.returncode == 0, known.stdout + known.stderr
    assert outcomes(tmp_path) == ["skipped"]
