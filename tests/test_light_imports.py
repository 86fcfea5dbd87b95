"""Commands that only read load nothing that takes seconds; found by what is imported, not timed."""

import json
import subprocess
import sys
from importlib.metadata import version

import pytest

import kernel_gym
import kernel_gym.tasks
from tests.storage.test_run_store import CONFIG, RunStore, end_all, record

HEAVY = ("torch", "triton", "scipy", "matplotlib", "transformers", "ray", "jinja2")
LOADED = f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
RUN = f"""
import sys
from kernel_gym.cli import app
try:
    app(sys.argv[1:])
finally:
    {LOADED}
"""


def heavy(code, *arguments):
    """The heavy packages that are loaded when the code has run."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True).stderr.splitlines()[-1]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    store = RunStore.start(tmp_path_factory.mktemp("light") / "run", CONFIG)
    store.append(record(CONFIG.tasks[0], 1), "x")
    end_all(store)
    return store.folder


@pytest.mark.parametrize(
    ("arguments", "loaded"),
    [
        ("--help", "[]"),
        ("bench --help", "[]"),
        ("rescore RUN --reward agentkernelarena --json", "[]"),
        ("compare RUN RUN", "['scipy']"),  # whose bootstrap makes the intervals
        ("sim --audit --report REPORT -- true", "[]"),  # the command's processes load PyTorch
    ],
)
def test_commands_that_read_load_nothing_they_do_not_need(run, arguments, loaded):
    names = {"RUN": str(run), "REPORT": str(run.parent / "audit.xml")}
    given = [names.get(word, word) for word in arguments.split()]
    assert heavy(RUN, *given) == loaded


TYPING_ERRORS = (
    "check triton2triton/softmaxx SOURCE",
    "check triton2triton/softmax SOURCE --reward kernel_op",
    "check triton2triton/softmax SOURCE --device sim:gfx943",
    "check triton2triton/softmax SOURCE --device tpu:0",
    "check triton2triton/softmax SOURCE --seed -5",
    "tasks show softmax",
    "tasks list --suite quikstart",
    "admit --task softmax",
    "eval --out OUT --policy baselin",
    "eval --out OUT --policy baseline --suite quikstart",
    "eval --out OUT --policy baseline --suite triton2triton/softmaxx",
    "eval --out OUT --policy baseline --suite no.toml",
    "eval --out OUT --policy baseline --device sim:gfx",
    "eval --out OUT --policy baseline --reward kernel_op",
    "rescore RUN --reward kernel_op",
)


@pytest.mark.parametrize("arguments", TYPING_ERRORS)
def test_a_typing_error_is_answered_before_anything_heavy_is_loaded(run, arguments, tmp_path):
    (tmp_path / "source.py").write_text("x = 1\n")
    names = {"RUN": run, "OUT": tmp_path / "out", "SOURCE": tmp_path / "source.py"}
    given = [str(names.get(word, word)) for word in arguments.split()]
    command = [sys.executable, "-c", RUN, *given]
    result = subprocess.run(command, capture_output=True, text=True)
    *said, loaded = result.stderr.splitlines()
    assert result.returncode == 2
    assert loaded == "[]"
    assert "Traceback" not in result.stderr
    assert said[0].startswith("error: ") == ("--seed" not in arguments)
    assert not (tmp_path / "out").exists()


def test_the_version_is_said_and_nothing_is_loaded():
    command = [sys.executable, "-c", RUN, "--version"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.stdout.strip() == f"kernel-gym {version('kernel-gym')}"
    assert result.stderr.splitlines()[-1] == "[]"


CHECK = """
import atexit, json, subprocess, sys
started, loaded = [], sys.argv.pop(1).split()

class Noted(subprocess.Popen):
    def __init__(self, command, **options):
        before = [name for name in ("torch", "typer", "pydantic") if name in sys.modules]
        started.append([command, before])
        super().__init__(command, **options)

subprocess.Popen = Noted
here = lambda: [name for name in loaded if name in sys.modules]
atexit.register(lambda: print(json.dumps([started, here()]), file=sys.stderr))
from kernel_gym.cli import main
main()
"""
"""Runs a command, and says which processes it has started, and which of some modules it has loaded.
"""
UNUSED = (
    *("triton", "gymnasium", "kernel_gym.sim.engine.engine", "kernel_gym.imports.imported"),
    "kernel_gym.judge.timing.gpu",
)
"""Modules that `check` of a kernel in Triton on the simulator does not need in its own process."""


def test_check_starts_its_workers_first_and_loads_what_it_needs(tmp_path):
    source = tmp_path / "source.py"
    source.write_text("import torch\ndef softmax(x):\n    return torch.softmax(x, -1)\n")
    command = [sys.executable, "-c", CHECK, " ".join((*UNUSED, "torch"))]
    given = ["check", "triton2triton/softmax", str(source), "--device", "sim:gfx942"]
    result = subprocess.run([*command, *given], capture_output=True, text=True)
    started, loaded = json.loads(result.stderr.splitlines()[-1])
    workers = [before for words, before in started if "kernel_gym.worker" in words]
    assert workers == [[]]  # one template, before any library was loaded
    assert loaded == ["torch"]
    assert result.returncode == 1  # as it launches no kernel
    assert "triton2triton/softmax on sim:gfx942" in result.stdout


def test_records_and_rewards_load_nothing_heavy():
    assert heavy(f"import sys, kernel_gym.rewards, kernel_gym.records\n{LOADED}") == "[]"
    assert heavy(f"import sys, kernel_gym.tasks as t\nt.draw\n{LOADED}") == "['torch']"


def test_the_package_loads_nothing_heavy_before_a_name_is_used():
    assert heavy(f"import sys, kernel_gym\n{LOADED}") == "[]"
    assert heavy(f"import sys, kernel_gym\nkernel_gym.get_reward\n{LOADED}") == "[]"
    with pytest.raises(AttributeError, match="No kernel_gym attribute evaluatee"):
        kernel_gym.evaluatee  # noqa: B018


@pytest.mark.parametrize("name", kernel_gym.__all__)
def test_a_public_name_of_the_package_can_be_used(name):
    assert getattr(kernel_gym, name) is not None
    assert name in dir(kernel_gym)


def test_every_public_name_of_tasks_is_there_and_no_other():
    public = {name: getattr(kernel_gym.tasks, name) for name in kernel_gym.tasks.__all__}
    assert dir(kernel_gym.tasks) == sorted(public)
    assert callable(public["prompt"])
    with pytest.raises(ImportError, match="cannot import name 'tasks_of'"):
        from kernel_gym.tasks import tasks_of  # noqa: F401
