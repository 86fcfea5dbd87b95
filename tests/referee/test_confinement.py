"""Hostile references, baselines and inputs files: none reaches what is outside of its process."""

import os
import socket
from pathlib import Path

import pytest

from kernel_gym.devices.base import Failed, InfraError
from kernel_gym.devices.cache import cache_folder
from kernel_gym.devices.sim.device import SimDevice
from kernel_gym.imports.authoring import tracer
from kernel_gym.judge.timing.baselines import BaselineRunner, BaselineTimes
from kernel_gym.referee.claim import read_claim
from kernel_gym.referee.statement import ClaimError
from kernel_gym.tasks.registry import get_task

HERE = Path(__file__).parent / "claims"
STATEMENT = (HERE / "gelu.toml").read_text()
REFERENCE = (HERE / "gelu_reference.py").read_text()
PAIR = (HERE / "swish_pair.py").read_text()

READ = "raise RuntimeError('REACHED ' + open({secret!r}).read())\n"
HOME = "import os\nraise RuntimeError('found ' + str(os.listdir({home!r})))\n"
WRITE = "open({planted!r}, 'w').write('x')\nraise RuntimeError('REACHED')\n"
CONNECT = (
    "import socket\nsocket.create_connection(('127.0.0.1', {port}), 2)\n"
    "raise RuntimeError('REACHED')\n"
)
START = "import subprocess\nsubprocess.run(['touch', {planted!r}], check=True)\n"
EXIT = "import os\nos._exit(0)\n"
RAISE_EXIT = "raise SystemExit(0)\n"
HANG = "while True:\n    pass\n"
GARBAGE = "import os\nos.write(3, b'\\xff' * 4096)\nos._exit(0)\n"
ANSWER = """
import json, os, struct
text = json.dumps({answer}).encode()
os.write(3, struct.pack("<II", len(text), 0) + text)
while True:
    pass
"""
FILE_OPERATOR = {
    "construction": {"nodes": [], "outputs": {}},
    "forward": {
        "nodes": [{"op": "aten.from_file.default", "args": ["/etc/passwd", False, 8]}],
        "outputs": [{"v": 0}],
    },
    "kinds": {},
}
LARGE = {
    "construction": {"nodes": [], "outputs": {}},
    "forward": {
        "nodes": [{"op": "aten.ones.default", "args": [[1 << 20, 1 << 20]], "kwargs": {}}],
        "outputs": [{"v": 0}],
    },
    "kinds": {},
    "call": {"init": [], "args": [[3.0], {"dict": {}}]},
}
DEEP = {**FILE_OPERATOR, "forward": {"nodes": [{"op": "argument", "args": 7}], "outputs": 5}}
ATTACKS = {
    "reads a file": (READ, "FileNotFoundError|PermissionError"),
    "lists the home": (HOME, r"FileNotFoundError|PermissionError|found \[\]"),
    "writes a file": (WRITE, "OSError|FileNotFoundError|PermissionError"),
    "opens a socket": (CONNECT, "OSError|ConnectionRefusedError|PermissionError"),
    "starts a process": (START, "Error"),
    "exits": (EXIT, "the process ended"),
    "raises SystemExit": (RAISE_EXIT, "SystemExit"),
    "hangs": (HANG, "more than 3 s"),
    "answers with garbage": (GARBAGE, "the process ended"),
    "forges an operator that reads files": (
        ANSWER.replace("{answer}", repr(FILE_OPERATOR)),
        "aten.from_file.default, which is not taken",
    ),
    "forges a result without end": (
        ANSWER.replace("{answer}", repr(LARGE)),
        "use smaller shapes|no tensor with an axis",
    ),
    "forges a malformed answer": (ANSWER.replace("{answer}", repr(DEEP)), "found no outputs"),
}


def planted_claim(folder, carrier, code):
    """Writes a claim in which one file starts with hostile code, and reads it."""
    files = {"s.toml": STATEMENT, "gelu_reference.py": REFERENCE, "k.py": "x"}
    arguments = {"kernel": folder / "k.py", "inputs": folder / "s.toml"}
    if carrier == "reference":
        files["gelu_reference.py"] = code + REFERENCE
    elif carrier == "baseline":
        files["s.toml"] = STATEMENT.replace('reference = "gelu_reference.py"\n', "")
        files["base.py"] = code + REFERENCE
        arguments["baseline"] = folder / "base.py"
    else:
        files["pair.py"] = code + PAIR
        arguments["inputs"] = folder / "pair.py"
    for name, text in files.items():
        (folder / name).write_text(text)
    return read_claim(**arguments)


def attacks_by_carrier():
    """Each attack in each file of a claim. A run of the tests plays each once, files in turn."""
    for number, attack in enumerate(ATTACKS):
        for turn, carrier in enumerate(("reference", "baseline", "inputs")):
            marks = () if number % 3 == turn else pytest.mark.sweep
            yield pytest.param(attack, carrier, id=f"{attack}-{carrier}", marks=marks)


@pytest.mark.parametrize(("attack", "carrier"), attacks_by_carrier())
def test_hostile_files_reach_nothing(tmp_path, monkeypatch, carrier, attack):
    code, message = ATTACKS[attack]
    secret, planted = tmp_path / "secret", tmp_path / "planted"
    secret.write_text("known to the user only")
    monkeypatch.setattr(tracer, "TIMEOUT_SECONDS", 3.0 if attack == "hangs" else 60.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        if "json" not in code:
            port = server.getsockname()[1]
            places = {"secret": str(secret), "planted": str(planted), "home": str(Path.home())}
            code = code.format(**places, port=port)
        with pytest.raises(ClaimError, match=message) as raised:
            planted_claim(tmp_path, carrier, code)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert not planted.exists()
    assert "REACHED" not in str(raised.value)


def test_an_honest_claim_passes_through_the_same_files(tmp_path):
    for carrier in ("reference", "baseline", "inputs"):
        folder = tmp_path / carrier
        folder.mkdir()
        assert planted_claim(folder, carrier, "import os\n").problem.claimed


POISON = """
import os, pathlib
place = pathlib.Path({cache!r}) / "planted"
try:
    place.write_text("x")
    answer = "REACHED"
except OSError as error:
    answer = type(error).__name__
raise RuntimeError(f"{{answer}} {{os.getuid()}} {{os.environ['TRITON_CACHE_DIR']}}")
"""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The folder of compiled baselines, which all evaluations of a user share."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return cache_folder("triton")


def test_the_baseline_of_a_claim_cannot_write_the_shared_cache(tmp_path, cache):
    """A poisoned cache would change the machine code and the time of other baselines."""
    (tmp_path / "base.py").write_text("import triton\n" + POISON.format(cache=str(cache)))
    claim = read_claim(HERE / "gelu_cached.py", HERE / "gelu.toml", tmp_path / "base.py")
    runner = BaselineRunner(SimDevice(), BaselineTimes())
    with pytest.raises(InfraError) as raised:
        runner.session(claim.against_baseline)
    runner.close()
    assert "REACHED" not in str(raised.value)
    assert f" {os.getuid()} " not in str(raised.value)
    assert str(cache) not in str(raised.value)
    assert list(cache.iterdir()) == []


def test_a_baseline_of_the_project_may_write_it(cache):
    """The control of the test above: the same text reaches the cache where it is trusted."""
    session = SimDevice().open(get_task("triton2triton/gelu"), trusted=True)
    failed = session.load(POISON.format(cache=str(cache)))
    session.close()
    assert isinstance(failed, Failed)
    assert "REACHED" in failed.message
    assert (cache / "planted").exists()
