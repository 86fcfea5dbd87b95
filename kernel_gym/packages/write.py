"""Writes a package: an operator with its evidence, for Hugging Face's `kernels` and as a wheel.

README.md, evidence.json   what was judged, where, and what it gave
build/torch-rocm/          the kernel, its operator, plain PyTorch beside it, layers of models,
                           plug-ins for inference engines; for NVIDIA build/torch-cuda/
build/torch-cpu/           plain PyTorch alone
  backward/                the kernel of the gradient, if there is one, as an operator of its own
dist/*.whl                 the same as build/torch-rocm, to install with pip
tests/                     tests of the operator, with an example call
"""

from __future__ import annotations

import io
import json
import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path

import torch
from flit_core.wheel import WheelBuilder
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from kernel_gym.packages.engines import CLASSES, RELEASES, SGLANG, VLLM
from kernel_gym.packages.evidence import EVIDENCE, Evidence, PackageError, sha256
from kernel_gym.packages.operator import OperatorFacts, axes_of, operator_facts
from kernel_gym.records import source_digest
from kernel_gym.tasks import (
    Problem,
    Scale,
    Task,
    TensorArg,
    get_task,
    make_inputs,
    train_workloads,
)

TEMPLATES = Path(__file__).with_name("template")
FALLBACK = "build/torch-cpu"
BACKWARD: dict[str, str] = {
    "rms_norm": "rms_norm_backward",
    "layer_norm": "layer_norm_backward",
    "softmax": "softmax_backward",
    "gather_rows": "embedding_backward",
}
"""Problems with one whose kernel can compute their gradient: both have the same types."""
ALONE = ("metadata.json", "layers.py", "engines.py")
"""Files of a package that one inside another package has not."""
CANDIDATES = {"triton": "candidate.py", "hip": "candidate.hip"}
GATED: dict[str, dict[str, object]] = {
    "swiglu": {"layer": "SwiGLUMLP", "first": "gate_proj", "second": "up_proj", "packed": True},
    "geglu": {"layer": "GeGLUMLP", "first": "up_proj", "second": "gate_proj", "packed": False},
}
"""Layers of gated MLPs: their names, and the order of the projections in the operator's input."""
ENTRY_POINTS = {
    VLLM: ("vllm.general_plugins", "register_vllm"),
    SGLANG: ("sglang.srt.plugins", "register_sglang"),
}
"""The group of entry points in which an engine looks for plug-ins, and the function for it."""
WHEEL_TIME = (2020, 1, 1, 0, 0, 0)
"""The time of all files of a wheel, so that the same evidence gives the same wheel."""
EXAMPLE = "tests/example.pt"
VERSION = 1
LICENSE = "Apache-2.0"
"""The licence of start kernels, which submissions usually derive from."""


def write_package(
    folder: Path, task: Task, source: str, evidence: Evidence, backward_source: str = ""
) -> Evidence:
    """Writes a package into a new folder. A failure leaves nothing behind.

    Args:
        folder: The folder. It must not exist, or be empty.
        task: The task that was judged.
        source: The kernel's source.
        evidence: What its record says.
        backward_source: The source of the kernel of the gradient, if the evidence has one.

    Returns:
        The evidence with digests of all files.

    Raises:
        PackageError: The folder is not empty, the task's operation cannot be an operator, or the
            kernel of the gradient is none of this operation.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise PackageError(f"{folder} exists: expected a new or an empty folder")
    problem = task.problem
    facts = operator_facts(problem, task.language)
    contents = _contents(problem, facts, source, evidence)
    if evidence.backward is not None:
        if evidence.backward.architecture != evidence.architecture:
            raise PackageError(
                f"{task.id} was judged on {evidence.architecture}, the kernel of its gradient on "
                f"{evidence.backward.architecture}: expected the same"
            )
        contents |= _backward_contents(problem, evidence.backward, backward_source)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as held:
        draft = Path(held) / "package"
        for path, data in contents.items():
            (draft / path).parent.mkdir(parents=True, exist_ok=True)
            (draft / path).write_bytes(data)
        kernel = kernel_folder(evidence)
        _write_wheel(draft, kernel, facts, _entry_points(problem.name, facts))
        files = {
            str(path.relative_to(draft)): sha256(path.read_bytes())
            for path in sorted(draft.rglob("*"))
            if path.is_file()
        }
        complete = evidence.model_copy(update={"files": files})
        (draft / EVIDENCE).write_text(complete.model_dump_json(indent=2) + "\n", encoding="utf-8")
        if folder.exists():
            folder.rmdir()
        draft.rename(folder)
    return complete


def module_name(facts: OperatorFacts) -> str:
    """Returns the name that the wheel is imported by."""
    return facts.space


def _contents(
    problem: Problem, facts: OperatorFacts, source: str, evidence: Evidence
) -> dict[str, bytes]:
    """Returns the files of a package by path, without the wheel and the evidence."""
    pages = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    layers = layers_source(problem.name)
    values = asdict(facts) | {
        "evidence": evidence,
        "module": module_name(facts),
        "layers": bool(layers),
        "backward": BACKWARD.get(problem.name, "") if evidence.backward else "",
    }
    reference = problem.reference_source()
    kernel = {
        "__init__.py": pages.get_template("operator.py.jinja").render(values),
        CANDIDATES[facts.language]: source,
        "direct.py": _template("direct.py"),
        "dispatch.py": _template("dispatch.py"),
        "facts.json": _facts_json(problem, evidence),
        "inputs.py": _template("inputs.py"),
        "metadata.json": _metadata(problem, evidence.backend),
        "reference.py": reference,
    }
    if facts.language == "hip":
        kernel["hip_library.py"] = _template("hip_library.py")
    fallback = {
        "__init__.py": pages.get_template("fallback.py.jinja").render(values),
        "direct.py": _template("direct.py"),
        "inputs.py": _template("inputs.py"),
        "metadata.json": _metadata(problem, "cpu"),
        "reference.py": reference,
    }
    if layers:
        kernel["layers.py"] = fallback["layers.py"] = layers
    if problem.name in CLASSES:
        kernel["engines.py"] = _plugins(pages, problem.name, facts, evidence)
    texts = {f"{kernel_folder(evidence)}/{name}": text for name, text in kernel.items()}
    texts |= {f"{FALLBACK}/{name}": text for name, text in fallback.items()}
    texts["README.md"] = pages.get_template("README.md.jinja").render(values)
    test = pages.get_template("test_operator.py.jinja").render(values)
    texts[f"tests/test_{problem.name}.py"] = test
    data = {path: text.encode() for path, text in texts.items()}
    return data | {EXAMPLE: _example(problem)}


def kernel_folder(evidence: Evidence) -> str:
    """Returns the folder of the kernel's variant in a package."""
    return f"build/torch-{evidence.backend}"


def _backward_contents(problem: Problem, evidence: Evidence, source: str) -> dict[str, bytes]:
    """Returns the files of the kernel that computes the gradient of a problem, by path."""
    task = get_task(evidence.task)
    expected = BACKWARD.get(problem.name, "no kernel")
    if task.problem.name != expected:
        raise PackageError(
            f"{problem.name}: its gradient takes {expected}, found {task.problem.name}"
        )
    if source_digest(source) != evidence.source_sha256:
        raise PackageError(f"{task.id}: the source is not the one that the evidence speaks of")
    files = _contents(task.problem, operator_facts(task.problem, task.language), source, evidence)
    kernel = kernel_folder(evidence)
    own = {path.removeprefix(f"{kernel}/"): data for path, data in files.items() if kernel in path}
    inner = {f"{kernel}/backward/{name}": own[name] for name in own if name not in ALONE}
    return inner | {f"{kernel}/gradient.py": _template(f"gradients/{problem.name}.py").encode()}


def layers_source(problem: str) -> str:
    """Returns the layers of models that compute a problem's operation; empty if there are none."""
    if problem in GATED:
        page = (TEMPLATES / "layers/gated.py.jinja").read_text(encoding="utf-8")
        values = GATED[problem] | {"entry": problem}
        return Template(page, trim_blocks=True, keep_trailing_newline=True).render(values)
    path = TEMPLATES / f"layers/{problem}.py.jinja"
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _plugins(pages: Environment, problem: str, facts: OperatorFacts, evidence: Evidence) -> str:
    """Returns the module that puts the kernel into inference engines."""
    classes = CLASSES[problem]
    own = (TEMPLATES / f"plugins/{problem}.py.jinja").is_file()
    values = {
        "classes": classes,
        "releases": RELEASES,
        "entry": facts.entry,
        "dtypes": [dtype for _, dtype in facts.floats],
        "settings": dict(pair for one in classes.values() for pair in one.settings.items()),
        "form": problem if own else "activation",
        "method": "forward_hip" if evidence.backend == "rocm" else "forward_cuda",
    }
    return pages.get_template("plugins/common.py.jinja").render(values)


def _entry_points(problem: str, facts: OperatorFacts) -> str:
    """Returns the parts of a project's file that name the plug-ins."""
    points = (ENTRY_POINTS[engine] for engine in CLASSES.get(problem, {}))
    name = module_name(facts)
    return "".join(
        f'[project.entry-points."{group}"]\n{name} = "{name}.engines:{function}"\n'
        for group, function in points
    )


def _template(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _facts_json(problem: Problem, evidence: Evidence) -> str:
    rows = evidence.workloads if problem.fair_reference else ()
    facts = {
        "architecture": evidence.capability,
        "strided": problem.strided and evidence.task.split("/")[0].endswith("triton"),
        "tensors": [
            [arg.name, str(arg.dtype), axes_of(arg)]
            for arg in problem.args
            if isinstance(arg, TensorArg)
        ],
        "axes": [[a.name, a.low, a.high, a.multiple] for a in problem.axes],
        "workloads": [{"dims": row.dims, "low": row.low} for row in rows],
    }
    return json.dumps(facts, indent=1) + "\n"


def _metadata(problem: Problem, backend: str) -> str:
    """Returns the metadata that Hugging Face's `kernels` reads."""
    data = {
        "id": f"gpu_kernel_{problem.name}_{backend}",
        "name": problem.name.replace("_", "-"),
        "version": VERSION,
        "license": LICENSE,
        "python-depends": [],
        "backend": {"type": backend},
    }
    return json.dumps(data, indent=2) + "\n"


def _example(problem: Problem) -> bytes:
    """Returns the arguments of a small call, as PyTorch saves them."""
    smallest = min(
        train_workloads(problem, Scale.SIM), key=lambda load: problem.elements(load.dims)
    )
    buffer = io.BytesIO()
    torch.save([*make_inputs(problem, smallest, 0).values()], buffer)
    return buffer.getvalue()


def _write_wheel(draft: Path, kernel: str, facts: OperatorFacts, entry_points: str) -> None:
    """Builds the wheel of the kernel's variant, in the folder `kernel`, into `dist`."""
    name = module_name(facts)
    with tempfile.TemporaryDirectory() as held:
        place = Path(held)
        shutil.copytree(draft / kernel, place / name)
        (place / "pyproject.toml").write_text(
            f'[project]\nname = "{name}"\nversion = "{VERSION}"\n'
            f"description = {json.dumps(facts.summary, ensure_ascii=False)}\n"
            f'requires-python = ">=3.10"\ndependencies = ["torch"]\n{entry_points}',
            encoding="utf-8",
        )
        with io.BytesIO() as wheel:
            builder = WheelBuilder.from_ini_path(place / "pyproject.toml", wheel)
            builder.source_time_stamp = WHEEL_TIME
            builder.build()
            (draft / "dist").mkdir()
            (draft / "dist" / builder.wheel_filename).write_bytes(wheel.getvalue())
