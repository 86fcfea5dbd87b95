"""Runs a script and measures the time of each class of modules, with what it calls."""

from __future__ import annotations

import inspect
import os
import runpy
import sys
import time
from collections import defaultdict
from pathlib import Path

import torch


class _Clock:
    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.seconds: dict[type, float] = defaultdict(float)
        self.files: dict[type, str] = {}
        self.calls: dict[type, int] = defaultdict(int)
        self.inputs: dict[type, list[dict[str, object]]] = {}
        self.plain: dict[type, bool] = {}
        self.made: dict[type, dict[str, object]] = {}
        self._depth, self._whole = 0, 0.0
        self._call = torch.nn.Module.__call__

    def __call__(self, module: torch.nn.Module, *args: object, **kwargs: object) -> object:
        kind = type(module)
        self._note(kind, module, args, kwargs)
        began = time.perf_counter()
        self._depth += 1
        try:
            return self._call(module, *args, **kwargs)
        finally:
            spent = time.perf_counter() - began
            self.seconds[kind] += spent
            self.calls[kind] += 1
            self._depth -= 1
            self._whole += spent if self._depth == 0 else 0.0

    def _note(
        self,
        kind: type,
        module: torch.nn.Module,
        args: tuple[object, ...],
        kwargs: dict[str, object],
    ) -> None:
        if kind in self.inputs:
            return
        bound = inspect.signature(module.forward).bind(*args, **kwargs).arguments
        tensors = {k: v for k, v in bound.items() if isinstance(v, torch.Tensor)}
        self.files[kind] = _file(kind, self.folder)  # __main__ is the script only while it runs
        self.plain[kind] = len(tensors) == len(bound)
        self.made[kind] = _constructor(module)
        self.inputs[kind] = [
            {"name": k, "dtype": str(v.dtype)[6:], "shape": list(v.shape), "below": _bound(v)}
            for k, v in tensors.items()
        ]

    def rows(self) -> list[dict[str, object]]:
        """Returns what was seen, the longest first."""
        order = sorted(self.seconds, key=lambda kind: -self.seconds[kind])
        return [
            {
                "name": kind.__name__,
                "module": kind.__module__,
                "file": self.files[kind],
                "made": self.made[kind],
                "share": self.seconds[kind] / (self._whole or 1.0),
                "calls": self.calls[kind],
                "inputs": self.inputs[kind],
                "plain": self.plain[kind],
            }
            for kind in order
        ]


def _bound(tensor: torch.Tensor) -> int | None:
    """Returns the least number above integers such as indices; None where values are others."""
    real = tensor.dtype.is_floating_point or tensor.dtype.is_complex
    if real or tensor.dtype is torch.bool or not tensor.numel() or int(tensor.min()) < 0:
        return None
    return int(tensor.max()) + 1


def _file(kind: type, folder: str) -> str:
    module = sys.modules.get(kind.__module__)
    file = getattr(module, "__file__", None) or ""
    return os.path.relpath(file, folder) if file.startswith(folder) else ""


def _constructor(module: torch.nn.Module) -> dict[str, object]:
    """Returns the arguments of a module's constructor, as far as the module keeps them.

    Those are attributes of the same name that are numbers, truth values or texts, and a `config`
    of transformers, as its class and what differs from the defaults. Arguments that have their
    defaults are left out. One that is not kept and has no default is None.
    """
    made: dict[str, object] = {}
    for name, parameter in inspect.signature(type(module).__init__).parameters.items():
        if name == "self" or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        value: object = getattr(module, name, None)
        if hasattr(value, "to_diff_dict"):
            kind = type(value)
            given = {k: v for k, v in value.to_diff_dict().items() if _is_plain(v)}
            made[name] = {"module": kind.__module__, "name": kind.__name__, "given": given}
        elif _is_plain(value):
            if value != parameter.default:
                made[name] = {"value": value}
        elif parameter.default is parameter.empty:
            made[name] = None
    return made


def _is_plain(value: object) -> bool:
    return isinstance(value, bool | int | float | str)


def profile(files: dict[str, str], script: str) -> list[dict[str, object]]:
    """Writes the files, runs the script and returns its modules by time."""
    folder = Path(os.environ["TMPDIR"]) / "user_files"
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    place = folder / script
    sys.path[:0] = [str(place.parent), str(folder)]
    sys.argv = [script]
    clock = _Clock(str(folder))
    torch.nn.Module.__call__ = lambda module, *a, **k: clock(module, *a, **k)  # type: ignore[method-assign]
    runpy.run_path(str(place), run_name="__main__")
    return clock.rows()
