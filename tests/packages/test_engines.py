"""Plug-ins of packages for inference engines: they take calls of the classes that they replace."""

from __future__ import annotations

import ast
import configparser
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from kernel_gym.packages.engines import CLASSES, SGLANG, VLLM, described
from kernel_gym.packages.write import ENTRY_POINTS

VARIABLE = "KERNEL_GYM_ENGINES"
SOURCES = os.environ.get(VARIABLE, "")
PAIRS = [(problem, engine) for problem in CLASSES for engine in CLASSES[problem]]
CALLS = """
import importlib, sys, warnings
import torch
from kernel_gym.packages.engines import CLASSES, VLLM
from tests.packages import engine_stubs as stubs

engine, problems = {engine!r}, {problems!r}
hooks = stubs.install("cuda", {sources!r})
warnings.simplefilter("error")
for problem in problems:
    plugin = importlib.import_module(f"gpu_kernel_{{problem}}.engines")
    for _ in range(2 if engine == VLLM else 1):  # vLLM may load a plug-in twice
        (plugin.register_vllm if engine == VLLM else plugin.register_sglang)()
if engine != VLLM:
    hooks.apply_hooks()


def drawn(*shape, dtype):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(shape, generator=generator).to(dtype).cuda()


def call(problem, dtype):
    if problem == "rope":
        width = stubs.HEADS * stubs.HEAD
        positions = torch.arange(7, 23).cuda()
        return positions, drawn(16, width, dtype=dtype), drawn(16, width // 4, dtype=dtype)
    x = drawn(8, 2 * stubs.WIDTH if problem == "swiglu" else stubs.WIDTH, dtype=dtype)
    return (x, x.flip(0)) if problem == "add_rms_norm" else (x,)


def compare(module, label, values, calls):
    before = module.calls
    results = module(*values)
    print(label, module.calls - before == calls)
    right = module.forward_native(*values)
    for ours, plain in zip(*(r if isinstance(r, tuple) else (r,) for r in (results, right))):
        torch.testing.assert_close(ours, plain, rtol=2e-2, atol=2e-2)


for problem in problems:
    one = CLASSES[problem][engine]
    module = getattr(sys.modules[one.module], one.name)()
    kernel, other = torch.float16, torch.bfloat16
    if problem in ("swiglu", "gelu", "relu_squared"):
        kernel, other = other, kernel
    values = call(problem, kernel)
    compare(module, f"{{problem}}: the kernel runs", values, 0)
    compare(module, f"{{problem}}: own code runs for another type", call(problem, other), 1)
    for name, value in one.settings.items():
        setattr(module, name, 3)
        compare(module, f"{{problem}}: own code runs for another {{name}}", values, 1)
        setattr(module, name, value)
    compare(module, f"{{problem}}: the kernel runs again", values, 0)
"""


@pytest.fixture(scope="module")
def installed(write, tmp_path_factory):
    """A folder with the wheels of all packages."""
    place = tmp_path_factory.mktemp("engines")
    for problem in CLASSES:
        folder = write(place / problem, f"torch2triton/{problem}")
        (wheel,) = (folder / "dist").glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(place / "installed")
    return place / "installed"


def run(installed, *command):
    """Runs a Python program that finds the packages and the stand-ins."""
    places = os.pathsep.join([str(installed), str(Path(__file__).parents[2])])
    environment = {**os.environ, "PYTHONPATH": places}
    return subprocess.run(command, capture_output=True, text=True, env=environment)


@pytest.mark.parametrize(
    ("engine", "turn"),
    [
        (VLLM, 1),
        (SGLANG, -1),
        pytest.param(VLLM, -1, marks=pytest.mark.sweep),
        pytest.param(SGLANG, 1, marks=pytest.mark.sweep),
    ],
)
def test_classes_with_kernels_give_what_the_engine_gives(installed, tmp_path, engine, turn):
    problems = [problem for problem in CLASSES if engine in CLASSES[problem]][::turn]
    script = tmp_path / "calls.py"
    script.write_text(CALLS.format(engine=engine, problems=problems, sources=SOURCES))
    program = ["-m", "kernel_gym", "sim", "--", sys.executable, str(script)]
    done = run(installed, sys.executable, *program)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if " runs" in line]
    settings = sum(len(CLASSES[problem][engine].settings) for problem in problems)
    assert len(lines) == 3 * len(problems) + settings
    assert [line for line in lines if not line.endswith(" True")] == []


def test_the_wheel_names_its_plug_ins(original):
    (wheel,) = (original / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (one for one in archive.namelist() if one.endswith("entry_points.txt"))
        points = configparser.ConfigParser()
        points.read_string(archive.read(name).decode())
        text = archive.read("gpu_kernel_add_rms_norm/engines.py").decode()
    functions = {one.name for one in ast.parse(text).body if isinstance(one, ast.FunctionDef)}
    assert {group: dict(points[group]) for group in points.sections()} == {
        group: {"gpu_kernel_add_rms_norm": f"gpu_kernel_add_rms_norm.engines:{function}"}
        for group, function in ENTRY_POINTS.values()
    }
    assert {function for _, function in ENTRY_POINTS.values()} <= functions


CHANGED = """
import sys
from kernel_gym.packages import engines
from tests.packages import engine_stubs as stubs
for one in engines.CLASSES["add_rms_norm"].values():
    object.__setattr__(one, "parameters", (*one.parameters, "more"))
stubs.install("cpu")
from gpu_kernel_add_rms_norm.engines import register_sglang, register_vllm
register_vllm()
del sys.modules["sglang.srt.layers.layernorm"]
register_sglang()
print(stubs.registered())
"""


def test_a_class_with_another_signature_is_left_as_it_is(installed):
    done = run(installed, sys.executable, "-c", CHANGED)
    assert done.stdout == "[]\n", done.stdout + done.stderr
    assert "RMSNorm takes ['x', 'residual', 'more'], expected ['x', 'residual']" in done.stderr
    assert "SGLang is left as it is: No module named" in done.stderr


def test_an_operation_without_a_class_is_named():
    assert described("softmax") == "no class of vLLM or SGLang is known that computes softmax"
    assert "vLLM 0.33.0 (GELUTanh)" in described("gelu")
    assert "SGLang" not in described("gelu")


needs_sources = pytest.mark.skipif(
    not SOURCES, reason=f"{VARIABLE} names no folder with the sources of the engines"
)


def parsed(path):
    return ast.parse((Path(SOURCES) / path).read_text())


@needs_sources
@pytest.mark.parametrize(("problem", "engine"), PAIRS)
def test_the_facts_are_those_of_the_sources(problem, engine):
    one = CLASSES[problem][engine]
    tree = parsed(one.module.replace(".", "/") + ".py")
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    family, waiting = [], [one.name]
    while waiting:
        node = classes.get(waiting.pop())
        if node is not None:
            family.append(node)
            waiting += [base.id for base in node.bases if isinstance(base, ast.Name)]
    methods = {f.name: f for node in reversed(family) for f in node.body if hasattr(f, "args")}
    names = [arg.arg for arg in methods["forward_native"].args.args if arg.arg != "self"]
    assert tuple(names) == one.parameters
    text = "\n".join(ast.unparse(node) for node in family)
    for name in (*one.reads, *one.settings):
        assert f"self.{name}" in text or f'self.__dict__["{name}"]' in text, name


@needs_sources
def test_the_mechanisms_are_those_of_the_sources():
    custom_op = ast.unparse(parsed("vllm/model_executor/custom_op.py"))
    assert "op_registry_oot: dict[str" in custom_op
    assert "def register_oot(cls" in custom_op
    assert "if op_name not in op_registry_oot" in custom_op
    hooks = ast.unparse(parsed("sglang/srt/plugins/hook_registry.py"))
    assert "AROUND = 'around'" in hooks
    for engine, path in ((VLLM, "vllm/plugins"), (SGLANG, "sglang/srt/plugins")):
        assert f"'{ENTRY_POINTS[engine][0]}'" in ast.unparse(parsed(f"{path}/__init__.py"))
