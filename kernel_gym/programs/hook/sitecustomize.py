"""Python runs this file at its start in every process of `kernel-gym sim -- COMMAND`.

It waits for the first import of PyTorch or Triton and brings the simulated GPU up before it. A
Python that imports neither pays nothing.
"""

import importlib
import importlib.util
import sys
from importlib.machinery import PathFinder
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent
_PACKAGES = ("torch", "triton")


class _First:
    """Finds the first of the packages, and gives it a loader that brings the GPU up."""

    def find_spec(self, name, path=None, target=None):
        if name not in _PACKAGES:
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(self, spec.loader)  # type: ignore[assignment]
        return spec


class _Loader:
    """Brings the GPU up, then loads the package as usual.

    A search without an import, by `importlib.util.find_spec`, does not come here.
    """

    def __init__(self, first, loader):
        self._first = first
        self._loader = loader

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        name = module.__name__
        if self._first in sys.meta_path:
            sys.meta_path.remove(self._first)
        del sys.modules[name]  # the device's own imports come first
        _bring_up()
        importlib.import_module(name)


def _bring_up():
    try:
        from kernel_gym.programs.in_process import start
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "kernel_gym":
            raise
        text = (
            f"kernel-gym sim: {sys.executable} has no kernel_gym, which brings the simulated GPU; "
            "install kernel-gym in this Python, or run the command with the Python that has it"
        )
        raise ImportError(text) from None
    start()


def _run_next():
    """Runs the `sitecustomize` that this file hides."""
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != _FOLDER]
sys.meta_path.insert(0, _First())
_run_next()
