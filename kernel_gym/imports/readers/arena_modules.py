"""Tasks of AgentKernelArena that have a PyTorch module: those in HIP, and those without a kernel.

In HIP a candidate is a launcher that the prompt shows, or a Python module with `load_inline`, as in
our own HIP tasks. The others ask for FlyDSL: a candidate is a Python module, as in our tasks in
Triton.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path

from kernel_gym.imports.readers.base import (
    ConfinedRunner,
    FoundTask,
    Unsupported,
    UnsupportedTask,
    read_bytes,
    read_text,
)
from kernel_gym.imports.readers.cases import constructed, generator_of
from kernel_gym.imports.readers.halves import parsed
from kernel_gym.imports.readers.recording import RECORDING_SECONDS, SEED
from kernel_gym.imports.recorded.calls import parse_calls
from kernel_gym.imports.traced.loading import load_text
from kernel_gym.tasks.names import Mode
from kernel_gym.tasks.problem import Problem

STYLE = "module"
ENTRY = "model_new"
MODULES, MODEL = "pytorch_code_module", "model.py"
INTO_FLYDSL = "torch2flydsl"
"""The category whose tasks have a PyTorch module and no kernel."""
MAX_CASES = 12
_MAIN = re.compile(rb"^int\s+main\s*\(", re.MULTILINE)


def module_entry(
    checkout: Path, folder: Path, task: str, category: str, text: str
) -> FoundTask | Unsupported:
    """Returns a task with a PyTorch module.

    Raises:
        CheckoutError: Its file cannot be read.
    """
    into_flydsl = task.split("/")[0] == INTO_FLYDSL
    language = "FlyDSL" if into_flydsl else "HIP"
    paths = sorted((checkout / folder).glob(MODEL if into_flydsl else f"{MODULES}/*.py"))
    if not paths:
        why = f"{language}: it has no PyTorch module{_form(checkout / folder)}"
        return Unsupported(task, category, why)
    name = paths[0].relative_to(checkout).as_posix()
    classes = _modules(parsed(name, read_text(checkout, name)))
    if not classes:
        return Unsupported(task, category, f"{language}: its PyTorch file defines no module")
    stem = paths[0].stem
    chosen = [one for one in classes if stem.endswith(one.name)] or classes[-1:]
    details = {
        "style": STYLE,
        "file": name,
        "class": chosen[-1].name,
        "parameters": _parameters(chosen[-1]),
        "instruction": text,
    }
    mode = Mode.TORCH2TRITON if into_flydsl else Mode.TORCH2HIP
    return FoundTask(task, category, mode, (name,), details)


def _form(folder: Path) -> str:
    """Says which form the HIP code of a task without a module has, if it is no kernel alone."""
    if any((folder / "src").glob("*.cpp")):
        return "; the bindings of its kernel are in another file"
    texts = (read_bytes(folder, path.name) for path in sorted(folder.glob("*.hip")))
    return "; it is a program with a main function" if any(map(_MAIN.search, texts)) else ""


def prepare_module(checkout: Path, found: FoundTask, bench: ConfinedRunner) -> dict[str, object]:
    """Records the inputs of a module and traces it at many sizes.

    Raises:
        UnsupportedTask: It cannot be imported.
    """
    name = found.details["file"]
    options = {
        "style": "cases",
        "file": name,
        "most": MAX_CASES,
        "seconds": RECORDING_SECONDS,
        "seed": SEED,
    }
    answer = bench.run("record", {name: read_bytes(checkout, name)}, options)
    calls, _ = parse_calls(answer)
    made = generator_of(calls, constructed(answer), found.details["parameters"])
    return bench.trace(
        {"module.py": read_text(checkout, name), "inputs.py": made.text},
        f"module.py:{found.details['class']}",
        "inputs.py:make_inputs",
        "inputs.py:make_init",
        ENTRY,
        made.points,
    )


def module_problem(
    suite: str, checkout: Path, found: FoundTask, data: Mapping[str, object]
) -> Problem:
    """Makes the problem from the text that tracing has left.

    Raises:
        UnsupportedTask: What was prepared is of another version.
    """
    if "text" not in data:
        raise UnsupportedTask("what was prepared lacks its text: import it again")
    kind = type(load_text(found.name, str(data["text"])))
    own = {
        "name": f"{suite}/{found.name}",
        "suite": suite,
        "entry": ENTRY,
        "code": read_text(checkout, found.details["file"]),
        "source": "AgentKernelArena, github.com/AMD-AGI/AgentKernelArena",
    }
    return type(kind.__name__, (kind,), own)()


def _modules(tree: ast.Module) -> list[ast.ClassDef]:
    """Returns the classes that extend a module of PyTorch, such as `nn.CrossEntropyLoss`."""
    return [
        node
        for node in tree.body
        if isinstance(node, ast.ClassDef) and any(map(_is_module, map(ast.unparse, node.bases)))
    ]


def _is_module(base: str) -> bool:
    return "Module" in base or base.startswith(("nn.", "torch.nn."))


def _parameters(node: ast.ClassDef) -> list[str]:
    """Returns the names of the parameters of a constructor."""
    functions = (n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__")
    first = next(functions, None)
    return [argument.arg for argument in first.args.args[1:]] if first else []
