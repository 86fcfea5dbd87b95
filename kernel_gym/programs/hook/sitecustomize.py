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
    """Finds the first of the packages, and gives it a loader that brings the GPU up.

    A module of kernel_gym may be what imports it. The GPU needs modules of kernel_gym, so it comes
    up when that import has ended: before, some of them have begun and have no names yet.
    """

    def __init__(self):
        self.within = False
        """Whether a module of kernel_gym is being imported."""
        self.late = False
        """Whether the GPU comes up when that import ends."""

    def find_spec(self, name, path=None, target=None):
        own = name.startswith("kernel_gym.") and not self.within
        if not own and name not in _PACKAGES:
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            loader = _OwnLoader if own else _Loader
            spec.loader = loader(self, spec.loader)  # type: ignore[assignment]
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
        del sys.modules[name]  # the device comes first
        if self._first.within:
            _in_process().load_library()  # PyTorch asks for devices once, when it is imported
            self._first.late = True
            sys.modules[name] = module
            self._load(module)
        else:
            _in_process().start()
            importlib.import_module(name)

    def _load(self, module):
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)


class _OwnLoader(_Loader):
    """Loads a module of kernel_gym, then brings the GPU up if the module has imported PyTorch."""

    def exec_module(self, module):
        self._first.within = True
        try:
            self._load(module)
        finally:
            self._first.within = False
            if self._first.late:
                self._first.late = False
                _in_process().start()


def _in_process():
    """Returns the module that brings the GPU up. It imports neither of the packages."""
    try:
        from kernel_gym.programs import in_process
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "kernel_gym":
            raise
        text = (
            f"kernel-gym sim: {sys.executable} has no kernel_gym, which brings the simulated GPU; "
            "install kernel-gym in this Python, or run the command with the Python that has it"
        )
        raise ImportError(text) from None
    return in_process


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
