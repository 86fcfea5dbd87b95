"""Loads a Triton candidate: a Python module from a text."""

from __future__ import annotations

import linecache
import os
import sys
import types
from collections.abc import Callable

from kernel_gym.sandbox.failures import BuildError

MODULE = "candidate"


def load(source: str, entry: str) -> Callable[..., object]:
    """Executes the source as a module and returns its entry point.

    Triton reads the text of kernels through `inspect`, so the source is written to a file.

    Raises:
        BuildError: There is no such entry point, or it is not callable.
    """
    path = os.path.join(os.environ["TMPDIR"], f"{MODULE}.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(source)
    module = types.ModuleType(MODULE)
    module.__file__ = path
    sys.modules[MODULE] = module
    linecache.checkcache(path)
    exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)
    function = getattr(module, entry, None)
    if function is None:
        defined = sorted(n for n in module.__dict__ if callable(module.__dict__[n]))
        names = ", ".join(n for n in defined if not n.startswith("_")) or "nothing callable"
        raise BuildError(f"the module defines no function {entry!r}; it defines {names}")
    if not callable(function):
        raise BuildError(f"{entry!r} is a {type(function).__name__}, expected a function")
    return function
