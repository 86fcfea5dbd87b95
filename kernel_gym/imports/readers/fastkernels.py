"""Reads FastKernels: modules of models, with the shapes that were captured in runs of them.

A checkout must have the registry of shapes, `shape_registry.yaml`, which later commits left out. A
task is a module of the registry at the lowest two levels. Equal sizes in its shapes are one axis.
"""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kernel_gym.imports.readers.base import (
    CheckoutError,
    ConfinedRunner,
    FoundTask,
    Unsupported,
    read_text,
)
from kernel_gym.imports.readers.fastkernels_classes import class_of, parameters_of
from kernel_gym.imports.readers.halves import parsed
from kernel_gym.imports.readers.traced_reader import ENTRY, TracedReader
from kernel_gym.imports.readers.yaml_files import read_keys
from kernel_gym.imports.traced.graph import DTYPES
from kernel_gym.tasks.names import Mode

PACKAGE = "fastkernels"
LEVELS = ("L1", "L2")
_REGISTRY = f"{PACKAGE}/bench/kernels/benchmark_scenarios/small/shape_registry.yaml"
_TRACED = "problem.py"
MAX_SCENARIO_FILES = 60
IMAGE = 4
"""Sizes in the shape of images: batch, channels, height, width."""
_HALVES = {"float16", "bfloat16"}
Scenario = dict[str, Any]


class FastKernelsReader(TracedReader):
    """Reads one language of the modules."""

    source = "FastKernels, github.com/Snowflake-AI-Research/fastkernels"
    code_file = 1

    def detect(self, checkout: Path) -> bool:
        """Whether the registry of shapes is there."""
        return (checkout / _REGISTRY).is_file()

    def entries(self, checkout: Path) -> Iterator[FoundTask | Unsupported]:
        """Yields one task for each operation of the registry that is a kernel or a block."""
        for stem, scenarios in sorted(_registry(checkout).items()):
            module = _module(checkout, stem)
            if module is None:
                continue
            level = module.split("/")[-2]
            name = f"{level}/{stem}"
            try:
                yield _entry(checkout, module, stem, name, level, scenarios, self.mode)
            except CheckoutError as error:
                yield Unsupported(name, level, str(error))

    def prepare(self, checkout: Path, found: FoundTask, bench: ConfinedRunner) -> dict[str, Any]:
        """Traces the module at captured shapes and others."""
        files = {name: read_text(checkout, name) for name in found.files[1:]}
        scenario, target = found.details["scenario"], found.details["class"]
        files[_TRACED] = traced_text(scenario, found.files[1], target)
        return bench.trace(
            files,
            f"{_TRACED}:Model",
            f"{_TRACED}:make_inputs",
            f"{_TRACED}:make_init",
            ENTRY,
            [_sizes(scenario)],
        )


@functools.lru_cache(maxsize=2)
def _registry(checkout: Path) -> dict[str, list[Scenario]]:
    return {
        str(stem): _scenarios(row.get("scenarios"))
        for stem, row in read_keys(checkout, _REGISTRY).items()
        if isinstance(row, dict)
    }


def _scenarios(rows: object) -> list[Scenario]:
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _module(checkout: Path, stem: str) -> str | None:
    """Returns the file of an operation: its PyTorch reference, or the baseline."""
    for kind in ("reference", "baseline"):
        for level in LEVELS:
            name = f"{PACKAGE}/tasks/{kind}/{level}/{stem}.py"
            if (checkout / name).is_file() and "load_inline" not in read_text(checkout, name):
                return name
    return None


def _entry(
    checkout: Path,
    module: str,
    stem: str,
    name: str,
    level: str,
    scenarios: list[Scenario],
    mode: Mode,
) -> FoundTask | Unsupported:
    chosen = class_of(stem, _classes(checkout, module), scenarios)
    if chosen is None:
        return Unsupported(name, level, f"{module}: found no class like {stem!r}")
    usable = _usable(stem, chosen, scenarios)
    if not usable:
        return Unsupported(name, level, f"{_REGISTRY}: {stem}: found no inputs with shapes")
    scenario = max(usable, key=lambda one: math.prod(_sizes(one).values()))
    if missing := sorted(parameters_of(chosen)[1] - scenario["init"].keys()):
        return Unsupported(name, level, f"the registry states no {missing[0]} of {chosen.name}")
    files = (_REGISTRY, *_closure(checkout, module))
    return FoundTask(name, level, mode, files, {"class": chosen.name, "scenario": scenario})


def captured_texts(checkout: Path, stem: str, most: int) -> list[str]:
    """Returns a module, as `traced_text` makes it, for each captured call of an operation.

    Args:
        checkout: The checkout.
        stem: The operation.
        most: Most elements of the inputs of a call; larger calls are left out.

    Returns:
        The modules, by the number of elements.

    Raises:
        CheckoutError: A file cannot be read.
    """
    module, scenarios = _module(checkout, stem), _registry(checkout).get(stem, [])
    chosen = class_of(stem, _classes(checkout, module), scenarios) if module else None
    if module is None or chosen is None:
        return []
    calls = [one for one in _usable(stem, chosen, scenarios) if _elements(one) <= most]
    whole = [one for one in calls if parameters_of(chosen)[1] <= one["init"].keys()]
    return [traced_text(one, module, chosen.name) for one in sorted(whole, key=_elements)]


def _classes(checkout: Path, module: str) -> dict[str, ast.ClassDef]:
    tree = parsed(module, read_text(checkout, module))
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def _usable(stem: str, chosen: ast.ClassDef, scenarios: list[Scenario]) -> list[Scenario]:
    """Returns captured calls with shapes, with the parameters that the registry leaves out."""
    taken, needed = parameters_of(chosen)
    calls = []
    for one in filter(None, (_scenario(row, taken) for row in scenarios)):
        given = _LEFT_OUT.get(stem, {}) | one["init"]
        given |= _from_shape(one, needed - given.keys())
        calls.append({**one, "init": given})
    return calls


_WIDTHS = frozenset(
    "hidden_size in_features out_features dim embed_dim embedding_dim hidden_features "
    "num_embeddings context_dim input_size".split()
)
"""Parameters of classes that are the last size of an input, or may be as large."""


_INNER = frozenset("d_model intermediate_size output_size".split())
"""Parameters of classes that are sizes of parameters alone. They vary as the sizes of inputs do."""


_LEFT_OUT: dict[str, dict[str, Any]] = {
    "ada_layer_norm_continuous": {"conditioning_embedding_dim": 3072, "elementwise_affine": False},
    "conv2d": {"out_channels": 1, "kernel_size": 1},
    "gla_mlp": {"intermediate_size": 6912},
    "llama_mlp": {"config": None, "hidden_size": 4096, "intermediate_size": 14336},
    "oasis_final_layer": {"patch_size": 2, "out_channels": 16},
    "parallel_linear": {"output_size": 3072},
    "rotary_emb": {"max_position_embeddings": 8192, "rope_theta": 5e5},
    "timestep_embedding": {"embedding_dim": 3072, "pooled_projection_dim": 768},
    "vision_patch_merger": {"d_model": 4096},
    "vision_patch_embed": {"patch_size": 16, "temporal_patch_size": 2, "in_channels": 3},
    "yolov10_scdown": {"c2": 128, "k": 3, "s": 2},
}
"""Parameters that the registry leaves out and no shape shows: those of the suite's own models at
levels 3 and 4 (Flux, YOLOv10, Oasis, GLA, Qwen3-VL), and of Llama-3."""


def _from_shape(scenario: Scenario, missing: set[str]) -> dict[str, int]:
    """Returns parameters that the registry leaves out and the first shape shows.

    The first shape is that of the first real input. Images have their channels first, so that
    their `dim` is the second size.
    """
    tensors = [one for one in scenario["inputs"].values() if isinstance(one, dict)]
    real = [tensor for tensor in tensors if "float" in tensor["dtype"]]
    shape = (real or tensors)[0]["shape"]
    values = dict.fromkeys(missing & _WIDTHS, shape[-1] if shape else 1)
    names = {"in_channels", "out_channels", "num_features", "c1", "c2", "ed"}
    channels = (names | {"dim"} if len(shape) == IMAGE else names) & missing
    return values | dict.fromkeys(channels, shape[1] if len(shape) > 1 else 1)


def _scenario(row: Scenario, taken: set[str]) -> Scenario | None:
    """Returns the arguments of the class and the inputs of a captured call, or None."""
    inputs, init = row.get("inputs"), row.get("init_args") or {}
    if not isinstance(inputs, dict) or not isinstance(init, dict):
        return None
    for one in inputs.values():
        if isinstance(one, dict) and not (
            isinstance(one.get("shape"), list) and one.get("dtype") in DTYPES
        ):
            return None
    if not any(isinstance(one, dict) for one in inputs.values()):
        return None
    alone = {k: v[0] if isinstance(v, list) and len(v) == 1 else v for k, v in init.items()}
    return {"init": {k: v for k, v in alone.items() if k in taken}, "inputs": inputs}


def _elements(scenario: Scenario) -> int:
    """Returns how many elements the inputs of a captured call have."""
    tensors = (one for one in scenario["inputs"].values() if isinstance(one, dict))
    return sum(math.prod(one["shape"]) for one in tensors)


def _sizes(scenario: Scenario) -> dict[str, int]:
    """Returns a name for each size in the shapes, and for inner widths; equal sizes are one."""
    shapes = [one["shape"] for one in scenario["inputs"].values() if isinstance(one, dict)]
    inner = [n for name, n in scenario["init"].items() if name in _INNER]
    return {f"size_{n}": n for shape in [*shapes, inner] for n in shape if type(n) is int and n > 1}


def traced_text(scenario: Scenario, module: str, target: str) -> str:
    """Returns a module with the sizes of a scenario, around the suite's class."""
    sizes = _sizes(scenario)
    tensors = {k: v for k, v in scenario["inputs"].items() if isinstance(v, dict)}
    dtypes = {tensor["dtype"] for tensor in tensors.values()} & _HALVES
    default = min(dtypes) if dtypes else "float32"
    given = ", ".join(f"{k!r}: {_named(v, sizes)}" for k, v in scenario["init"].items())
    inputs = (
        f"    {k!r}: {_drawn(v, sizes) if k in tensors else repr(v)},"
        for k, v in scenario["inputs"].items()
    )
    lines = [
        "import torch",
        f"from {module.removesuffix('.py').replace('/', '.')} import {target}",
        "",
        *(f"{name} = {size}" for name, size in sizes.items()),
        "",
        "",
        f"class Model({target}):",
        "    def __init__(self, **given):",
        f"        torch.set_default_dtype(torch.{default})",
        "        try:",
        "            super().__init__(**given)",
        "        finally:",
        "            torch.set_default_dtype(torch.float32)",
        "",
        "",
        "def make_init():",
        f"    return {{{given}}}",
        "",
        "",
        "def make_inputs():",
        "    return {",
        *(f"    {line}" for line in inputs),
        "    }",
        "",
    ]
    return "\n".join(lines)


def _named(value: object, sizes: Mapping[str, int]) -> str:
    """Returns an argument with the names of sizes in place of numbers."""
    if isinstance(value, list):
        return f"[{', '.join(_named(one, sizes) for one in value)}]"
    known = f"size_{value}"
    return known if type(value) is int and known in sizes else repr(value)


def _drawn(spec: Mapping[str, Any], sizes: Mapping[str, int]) -> str:
    shape = f"({''.join(f'{_named(n, sizes)}, ' for n in spec['shape'])})"
    dtype = spec["dtype"]
    if dtype == "bool" or not dtype.startswith(("float", "bfloat")):
        return f"torch.randint(0, 2, {shape}, dtype=torch.{dtype})"
    return f"torch.randn({shape}).to(torch.{dtype})"


def _closure(checkout: Path, module: str) -> list[str]:
    """Returns a module and the modules of its package that it imports, directly or not."""
    files: list[str] = []
    waiting = [module]
    while waiting and len(files) < MAX_SCENARIO_FILES:
        name = waiting.pop(0)
        if name in files:
            continue
        files.append(name)
        parts = name.split("/")[:-1]
        waiting += [f"{'/'.join(parts[:n])}/__init__.py" for n in range(1, len(parts) + 1)]
        for node in ast.walk(parsed(name, read_text(checkout, name))):
            waiting += _imported(node, name)
        waiting = [one for one in waiting if (checkout / one).is_file()]
    return files


def _imported(node: ast.AST, file: str) -> list[str]:
    """Returns the files that a statement of a file may import, which need not exist."""
    names = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        above = file.split("/")[: -node.level] if node.level else []
        module = ".".join([*above, *filter(None, [node.module])])
        names = [module, *(f"{module}.{alias.name}" for alias in node.names)]
    paths = [n.replace(".", "/") for n in names if n.split(".")[0] == PACKAGE]
    return [file for path in paths for file in (f"{path}.py", f"{path}/__init__.py")]


TRITON = FastKernelsReader("fastkernels", Mode.TORCH2TRITON)
HIP = FastKernelsReader("fastkernels-hip", Mode.TORCH2HIP)
