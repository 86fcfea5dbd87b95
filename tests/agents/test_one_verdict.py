"""The same kernels by every way into the judge: one verdict.

`KERNEL_GYM_VERDICTS=50 pytest -m sweep tests/agents/test_one_verdict.py` takes fifty kernels.
"""

import asyncio
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from typer.testing import CliRunner

import kernel_gym
from kernel_gym.agents.backends import LocalTasks
from kernel_gym.agents.desk import Desk, Recorder
from kernel_gym.agents.harbor import write_harbor
from kernel_gym.agents.mcp_server import make_server
from kernel_gym.agents.serve import desk_server
from kernel_gym.agents.workspace import kernel_name, write_workspace
from kernel_gym.cli import app
from kernel_gym.exploits.loader import load_exploits
from kernel_gym.exploits.runner import runs_on
from kernel_gym.rewards import get_reward
from kernel_gym.storage.run_records import RunConfig
from kernel_gym.storage.run_store import RunStore
from kernel_gym.tasks import get_task
from tests.agents.conftest import DEVICE, TASK

pytestmark = pytest.mark.timeout(1200)
GOOD = get_task(TASK).start_source
FEW = [
    (TASK, GOOD, "passed"),
    (TASK, "x(", "compile_error"),
    (TASK, GOOD.replace("x - row_max", "x"), "wrong_values"),
]
SUITE = Path(kernel_gym.__file__).parent / "exploits/suite"


def many():
    """Kernels of the exploit suite with one possible outcome."""
    chosen = [
        pytest.param(
            exploit.task.id, exploit.source, str(next(iter(exploit.expected))), id=exploit.name
        )
        for exploit in load_exploits(SUITE)
        if len(exploit.expected) == 1
        and runs_on(exploit, DEVICE)
        and not exploit.open
        and not exploit.name.startswith("e10")
    ]
    return chosen[: int(os.environ.get("KERNEL_GYM_VERDICTS", "50"))]


@pytest.fixture
def ways(tmp_path, pool):
    """The ways: each takes a task id and a source, and returns an outcome."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

    def recorder(name, task, submissions=1):
        config = RunConfig(
            policy="x", suite=task, tasks=(task,), device=DEVICE, reward="kernel-opt",
            turns=submissions + 1,
        )  # fmt: skip
        store = RunStore.start(tmp_path / name, config, overwrite=True, secret=pool.secret)
        return Recorder(store, get_reward())

    def python(task, source):
        return str(pool.evaluate(task, source).outcome)

    def command(task, source):
        file = tmp_path / kernel_name(get_task(task))
        file.write_text(source)
        arguments = ["check", task, str(file), "--device", DEVICE, "--json"]
        return json.loads(CliRunner().invoke(app, arguments).stdout)["evaluation"]["outcome"]

    def workspace(task, source):
        folder = tmp_path / f"w{len(list(tmp_path.iterdir()))}"
        write_workspace(folder, get_task(task), DEVICE, 1)
        (folder / kernel_name(get_task(task))).write_text(source)
        made = recorder("workspace", task)
        with desk_server(folder, Desk(get_task(task), made, pool)):
            run = subprocess.run([str(folder / "check")], capture_output=True, text=True)
        outcome = str(made.store.records()[0].evaluation.outcome)
        assert run.returncode == (0 if outcome == "passed" else 1), run.stderr
        return outcome

    def mcp(task, source):
        backend = LocalTasks([get_task(task)], recorder("mcp", task), pool, DEVICE)
        server = make_server(backend)
        answer = asyncio.run(server.call_tool("submit_kernel", {"task": task, "source": source}))
        content = answer[0] if isinstance(answer, tuple) else answer
        return json.loads(content[0].text)["outcome"]

    def harbor(task, source):
        out = tmp_path / f"h{len(list(tmp_path.iterdir()))}"
        (folder,) = write_harbor([get_task(task)], out, DEVICE)
        file = out / "kernel"
        file.write_text(source)
        variables = {"PATH": path, "KERNEL_GYM_KERNEL": str(file), "KERNEL_GYM_OUT": str(out)}
        subprocess.run([str(folder / "tests/test.sh")], env={**os.environ, **variables}, check=True)
        reward = json.loads((out / "reward.json").read_text())
        outcome = json.loads((out / "evaluation.json").read_text())["evaluation"]["outcome"]
        assert reward["passed"] == (outcome == "passed")
        return outcome

    def inspect(task, source):
        from kernel_gym.agents.inspect_ai import evaluated

        return str(asyncio.run(evaluated(DEVICE, task, source)).outcome)

    known = {"Python": python, "command": command, "workspace": workspace, "Harbor": harbor}
    known |= {"MCP": mcp} if find_spec("mcp") else {}
    return known | ({"inspect": inspect} if find_spec("inspect_ai") else {})


@pytest.mark.slow
@pytest.mark.parametrize(("task", "source", "outcome"), FEW, ids=["good", "broken", "wrong"])
def test_a_few_kernels_have_one_verdict(ways, task, source, outcome):
    assert {name: way(task, source) for name, way in ways.items()} == dict.fromkeys(ways, outcome)


@pytest.mark.sweep
@pytest.mark.parametrize(("task", "source", "outcome"), many())
def test_many_kernels_have_one_verdict(ways, task, source, outcome):
    assert {name: way(task, source) for name, way in ways.items()} == dict.fromkeys(ways, outcome)
