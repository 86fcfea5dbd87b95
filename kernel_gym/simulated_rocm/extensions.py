"""PyTorch extensions in HIP on a simulated GPU: `torch.utils.cpp_extension.load` and `load_inline`.

PyTorch's own functions need a build of PyTorch for ROCm. These compile with our `hipcc` against the
headers of the PyTorch that is there. The extension uses the GPU of the process, like every library
that calls HIP.
Extensions that are built by `setup.py` are not covered.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from kernel_gym.devices.sim.read_headers import are_unchanged, keep_read_files
from kernel_gym.devices.sim.torch_headers import TORCH, header_words
from kernel_gym.simulated_rocm.folders import NO_RUNTIME, compiler_folder

DEVICE_SOURCES = (".hip", ".cu")
_BINDINGS = """
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{
{lines}
}}
"""
_originals: dict[str, Callable[..., object]] = {}


class ExtensionError(RuntimeError):
    """An extension does not build. The text has the compiler's messages."""


def install() -> None:
    """Makes PyTorch's functions build extensions in HIP."""
    # Not at the top: the import of that module calls this function (late_extensions.py).
    import torch.utils.cpp_extension as torch_extensions

    if not _originals:
        _originals.update(load=torch_extensions.load, load_inline=torch_extensions.load_inline)
        for function in (load, load_inline):
            setattr(torch_extensions, function.__name__, function)


def load(name: str, sources: str | Sequence[str], *args: object, **options: Any) -> object:
    """Builds and loads an extension; those without device code are left to PyTorch.

    Args:
        name: Name of the extension.
        sources: Paths of its files.
        args: The further arguments of PyTorch's function, by position.
        options: The further arguments of PyTorch's function, by name.

    Returns:
        The module, or the path of the library with `is_python_module=False`.

    Raises:
        ExtensionError: It does not build.
    """
    files = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    if not any(str(file).endswith(DEVICE_SOURCES) for file in files):
        return _originals["load"](name, sources, *args, **options)
    options |= _named(args)
    folder = options.get("build_directory") or _build_folder(name)
    flags = [f"-I{path}" for path in options.get("extra_include_paths") or ()]
    host = [*flags, *_words(options.get("extra_cflags"))]
    device = [*flags, *_words(options.get("extra_cuda_cflags"))]
    library = _built(name, files, host, device, _words(options.get("extra_ldflags")), Path(folder))
    if options.get("is_python_module", True):
        return _imported(name, library)
    torch.ops.load_library(str(library))
    return str(library)


def load_inline(
    name: str,
    cpp_sources: str | Sequence[str],
    cuda_sources: str | Sequence[str] | None = None,
    functions: Sequence[str] | dict[str, str] | None = None,
    **options: Any,
) -> object:
    """Builds and loads an extension from texts, see PyTorch's function.

    Raises:
        ExtensionError: It does not build.
    """
    if not cuda_sources:
        return _originals["load_inline"](name, cpp_sources, functions=functions, **options)
    folder = Path(options.pop("build_directory", None) or _build_folder(name))
    host = "\n".join(["#include <torch/extension.h>", *_texts(cpp_sources)])
    if functions:
        named = functions if isinstance(functions, dict) else {f: f for f in functions}
        lines = "\n".join(f'  m.def("{f}", &{f}, "{text}");' for f, text in named.items())
        host += _BINDINGS.format(lines=lines)
    includes = ["#include <torch/types.h>", "#include <hip/hip_runtime.h>"]
    device = "\n".join([*includes, *_texts(cuda_sources)])
    files = {folder / "main.cpp": host, folder / "device.hip": device}
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
    kept = {key: value for key, value in options.items() if key.startswith(("extra_", "is_"))}
    return load(name, [str(path) for path in files], build_directory=str(folder), **kept)


def _build_folder(name: str) -> str:
    import torch.utils.cpp_extension as torch_extensions

    return torch_extensions._get_build_directory(name, False)


def _named(args: Sequence[object]) -> dict[str, object]:
    names = ("extra_cflags", "extra_cuda_cflags", "extra_ldflags", "extra_include_paths")
    return dict(zip((*names, "build_directory", "verbose"), args, strict=False))


def _built(
    name: str,
    files: Sequence[str],
    host: list[str],
    device: list[str],
    link: list[str],
    folder: Path,
) -> Path:
    """Compiles what has changed and links; returns the library."""
    objects = []
    for file in files:
        is_device = str(file).endswith(DEVICE_SOURCES)
        language = [] if is_device else ["-x", "c++"]
        words = [*_common(name), *(device if is_device else host), *language, "-c", str(file)]
        objects.append(_once(words, [Path(file)], folder, ".o"))
    libraries = f"-L{TORCH / 'lib'}", "-ltorch", "-ltorch_cpu", "-lc10", "-ltorch_python"
    where = f"-Wl,-rpath,{TORCH / 'lib'}"
    return _once(["-shared", *map(str, objects), *libraries, where, *link], objects, folder, ".so")


def _common(name: str) -> list[str]:
    words = header_words()
    return [*words, "-std=c++20", "-fPIC", "-O2", f"-DTORCH_EXTENSION_NAME={name}"]


def _once(words: list[str], inputs: Sequence[Path], folder: Path, suffix: str) -> Path:
    """Runs the compiler, unless it has run with these words over these files and their headers.

    Returns:
        The file that the compiler wrote. Beside it lies the list of the headers that it read.
    """
    digest = hashlib.sha256("\0".join([*words, torch.__version__]).encode())
    for path in inputs:
        digest.update(path.read_bytes())
    output = folder / f"{digest.hexdigest()[:16]}{suffix}"
    headers = output.with_suffix(f"{suffix}.headers")
    if not (output.exists() and are_unchanged(headers)):
        compiler = compiler_folder()
        if compiler is None:
            raise ExtensionError(NO_RUNTIME)
        own = output.with_suffix(f".{os.getpid()}{suffix}")
        rules = own.with_suffix(".d")
        command = [str(compiler / "hipcc"), *words, "-MD", "-MF", str(rules), "-o", str(own)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise ExtensionError(f"the extension does not build:\n{done.stderr.strip()}")
        keep_read_files(_taken(rules), headers)
        own.replace(output)
    return output


def _taken(rules: Path) -> str:
    """Returns the rules for make that a compiler wrote, and removes them. A linker writes none."""
    if not rules.exists():
        return ""
    text = rules.read_text(encoding="utf-8")
    rules.unlink()
    return text


def _imported(name: str, library: Path) -> object:
    spec = importlib.util.spec_from_file_location(name, library)
    assert spec is not None  # a path with this suffix always has a loader
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[name] = module
    return module


def _words(given: Sequence[str] | None) -> list[str]:
    return [str(word) for word in given or ()]


def _texts(given: str | Sequence[str]) -> list[str]:
    return [given] if isinstance(given, str) else list(given)
