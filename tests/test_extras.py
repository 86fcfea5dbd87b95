"""The base installation: without PyTorch the light parts work, the others name the extra."""

import os
import re
import subprocess
import sys
import tomllib

import pytest

from kernel_gym.extras import EXTRAS, missing_extra
from tests.storage.test_run_store import CONFIG, RunStore, end_all, record
from tests.test_architecture import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
IMPORTED_AS = {"markupsafe": "jinja2", "pyyaml": "yaml"}
WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

BLOCKED = set(sys.argv.pop(1).split(","))
sys.meta_path.insert(0, Missing())
"""
MAIN = "from kernel_gym.cli import main\nmain()"
JUDGE = "torch,triton,itanium_demangler,flit_core,msgpack,safetensors"
PLOTS = "jinja2,matplotlib,scipy"
BASE = f"{JUDGE},{PLOTS}"


def run_without(blocked, code, *arguments):
    """Runs code in a process in which modules are missing."""
    command = [sys.executable, "-c", WITHOUT + code, blocked, *map(str, arguments)]
    environment = {**os.environ, "COLUMNS": "200"}
    return subprocess.run(command, capture_output=True, text=True, env=environment)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    store = RunStore.start(tmp_path_factory.mktemp("base") / "run", CONFIG)
    store.append(record(CONFIG.tasks[0], 1), "x")
    end_all(store)
    return store.folder


@pytest.mark.parametrize(
    "arguments",
    ["--help", "--version", "bench --help", "rescore RUN --reward agentkernelarena --json"],
)
def test_commands_of_the_base_installation_work(run, arguments):
    given = [str(run) if word == "RUN" else word for word in arguments.split()]
    result = run_without(BASE, MAIN, *given)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize(
    ("blocked", "arguments", "missing", "extra"),
    [
        (JUDGE, "check triton2triton/softmax SOURCE", "torch", "judge"),
        (JUDGE, "doctor", "torch", "judge"),
        (JUDGE, "demo", "torch", "judge"),
        (JUDGE, "tasks list", "torch", "judge"),
        (JUDGE, "report RUN", "torch", "judge"),
        (PLOTS, "report RUN", "jinja2|scipy", "report"),
        (BASE, "compare RUN RUN", "scipy", "report"),
    ],
)
def test_a_command_names_the_extra_that_it_needs(run, tmp_path, blocked, arguments, missing, extra):
    (tmp_path / "source.py").write_text("x = 1\n")
    names = {"RUN": run, "SOURCE": tmp_path / "source.py"}
    result = run_without(blocked, MAIN, *(names.get(word, word) for word in arguments.split()))
    (line,) = result.stderr.strip().splitlines()
    assert re.fullmatch(rf"error: ({missing}) is missing; .*'kernel-gym\[{extra}\]'", line)
    assert result.returncode == 2


def test_the_client_and_the_records_need_no_extra():
    code = "import kernel_gym.client, kernel_gym.records, kernel_gym.rewards\nprint('works')"
    assert run_without(BASE, code).stdout == "works\n"


@pytest.mark.parametrize(
    "code",
    [
        "import kernel_gym\nkernel_gym.evaluate",
        "from kernel_gym.tasks import Problem",
        "import gymnasium as g, kernel_gym\ng.make('KernelOpt-v0', task='triton2triton/softmax')",
    ],
)
def test_a_public_name_names_the_extra_that_it_needs(code):
    last = run_without(BASE, code).stderr.splitlines()[-1]
    assert re.match(
        r"ModuleNotFoundError: kernel_gym[\w.]*: torch is missing; .*kernel-gym\[judge\]", last
    )


def test_the_extras_are_those_of_the_project():
    for extra, modules in EXTRAS.items():
        wanted = PROJECT["optional-dependencies"][extra]
        names = {re.split(r"[\[<>=;]", each)[0].replace("-", "_") for each in wanted}
        assert {IMPORTED_AS.get(module, module) for module in modules} <= names
    assert {"torch", "triton"}.isdisjoint(
        re.split("[>=<]", each)[0] for each in PROJECT["dependencies"]
    )


def test_a_module_of_no_extra_is_not_explained():
    assert missing_extra(ModuleNotFoundError(name="nothing_of_ours")) is None
    assert missing_extra(ModuleNotFoundError()) is None
