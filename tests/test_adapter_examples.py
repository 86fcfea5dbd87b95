"""The examples for trainers: those whose package is installed play an episode on the simulator."""

import ast
import importlib.util
import os
import runpy
import subprocess
import sys
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples" / "adapters").glob("*.py"))
NEEDS = {
    "with_nemo_gym": "nemo_gym",
    "with_openrlhf": "torch",
    "with_skyrl": "skyrl_gym",
    "with_slime": "torch",
    "with_tinker": "tinker_cookbook",
    "with_trl": "torch",
    "with_verifiers": "verifiers.v1",
    "with_verl": "verl",
}
"""The package that an example imports; `torch` if it imports no package of its trainer."""


def installed(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def play(*arguments):
    environment = {
        **os.environ, "KERNEL_GYM_DEVICE": "sim:gfx942", "KERNEL_GYM_EXECUTOR": "inline",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=ROOT, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_adapter_has_an_example():
    assert {path.stem for path in EXAMPLES} == {*NEEDS, "with_openenv"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_and_says_how_it_is_run(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    header = ast.get_docstring(ast.parse(text))
    assert f"python examples/adapters/{path.name}" in header


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_imports_what_its_adapter_has(path):
    """Checked by reading, since the package of the trainer may be missing."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and "adapters" in node.module:
            file = ROOT / (node.module.replace(".", "/") + ".py")
            tree = ast.parse(file.read_text(encoding="utf-8"))
            targets = {
                name.id
                for statement in tree.body
                if isinstance(statement, ast.Assign)
                for name in statement.targets
            }
            defined = targets | {getattr(statement, "name", "") for statement in tree.body}
            assert {alias.name for alias in node.names} <= defined


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("with_nemo_gym", "nemo_gym"),
        ("with_openenv", "openenv"),
        ("with_skyrl", "skyrl_gym"),
        ("with_tinker", "tinker_cookbook"),
        ("with_verifiers", "verifiers"),
        ("with_verl", "verl"),
    ],
)
def test_an_example_without_its_package_says_what_to_install(name, package, monkeypatch):
    for module in list(sys.modules):
        if f"{module}.".startswith((f"{package}.", "kernel_gym.envs.adapters.")):
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SystemExit, match="is missing: pip install '") as ended:
        runpy.run_path(str(ROOT / "examples" / "adapters" / f"{name}.py"), run_name="__main__")
    assert "\n" not in str(ended.value)


@pytest.mark.parametrize(
    ("server", "package", "cure"),
    [
        ("openenv", "openenv", "pip install 'kernel-gym[openenv]'"),
        ("nemo_gym", "nemo_gym", "pip install nemo-gym"),
    ],
)
def test_a_server_without_its_package_says_what_to_install(server, package, cure, monkeypatch):
    for module in list(sys.modules):
        if f"{module}.".startswith((f"{package}.", "kernel_gym.envs.adapters.")):
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SystemExit, match="is missing") as ended:
        runpy.run_module(f"kernel_gym.envs.adapters.{server}", run_name="__main__")
    assert str(ended.value).endswith(cure)


def test_an_example_without_its_server_says_so_in_one_line(monkeypatch):
    pytest.importorskip("openenv.core.env_server", exc_type=ImportError)
    monkeypatch.setattr(sys, "argv", ["with_openenv.py", "http://127.0.0.1:9"])
    with pytest.raises(SystemExit, match="start the server first"):
        runpy.run_path(str(ROOT / "examples/adapters/with_openenv.py"), run_name="__main__")


@pytest.mark.slow
def test_examples_without_a_trainer_play_episodes():
    """One process plays them all, since each process loads PyTorch twice."""
    paths = [
        f"examples/adapters/{name}.py" for name, package in NEEDS.items() if package == "torch"
    ]
    program = "import runpy, sys\nfor path in sys.argv[1:]:\n    print('played by', path)\n"
    printed = play("-c", f"{program}    runpy.run_path(path, run_name='__main__')", *paths)
    sections = printed.split("played by ")[1:]
    assert [section.splitlines()[0] for section in sections] == paths
    assert [section for section in sections if "reward 0.1" not in section] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, package in NEEDS.items() if package != "torch"])
def test_an_example_plays_an_episode(name):
    if not installed(NEEDS[name]):
        pytest.skip(f"{NEEDS[name]} is not installed")
    printed = play(f"examples/adapters/{name}.py")
    assert "reward 0.1" in printed


@pytest.mark.slow
def test_the_example_of_openenv_plays_an_episode_over_a_socket():
    pytest.importorskip("openenv.core.env_server", exc_type=ImportError)
    import uvicorn

    from kernel_gym.envs.adapters.openenv import make_app
    from kernel_gym.executors import make_executor

    with make_executor("inline", device="sim:gfx942") as executor:
        app = make_app(executor, sessions=1, task="triton2triton/softmax", max_turns=1)
        listening = threading.Event()

        class Server(uvicorn.Server):
            async def startup(self, sockets=None):
                await super().startup(sockets)
                listening.set()

        server = Server(uvicorn.Config(app, port=0, log_level="error"))
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        try:
            assert listening.wait(60)
            port = server.servers[0].sockets[0].getsockname()[1]
            printed = play("examples/adapters/with_openenv.py", f"http://127.0.0.1:{port}")
        finally:
            server.should_exit = True
            thread.join()
    assert "reward 0.1" in printed
    assert "done True" in printed
