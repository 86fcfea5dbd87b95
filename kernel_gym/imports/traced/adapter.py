"""Code that calls a module with the original's interface with the arguments of a task.

A suite may ask for a class with the constructor and the `forward` of the original. The arguments of
our tasks are tensors: inputs, parameters and buffers. The adapter constructs the class, puts the
parameters into it by their names, strictly, and calls it. It runs in the candidate's worker.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kernel_gym.imports.traced.file import NotInShapes, sizes_of_shapes
from kernel_gym.imports.traced.graph import DTYPES
from kernel_gym.imports.traced.template import Expression, NodeTemplate

_WORDS = frozenset("None True False float math torch empty full dtype device".split()) | DTYPES
_PATH = re.compile(r"[A-Za-z0-9_.]+")


class _NoNumber(ValueError):
    pass


def adapter_text(
    entry: str,
    arguments: Sequence[NodeTemplate],
    how: Mapping[str, Any],
    paths: Mapping[str, str],
    function: str = "",
) -> str:
    """Returns the code of a function `entry`, or an empty text if there can be none.

    Args:
        entry: The name of the function that is written.
        arguments: The arguments of the task.
        how: `init` and `args` with expressions of sizes in place of numbers.
        paths: The path in the module of each parameter and buffer.
        function: The function of the candidate that is called; without it, the class `ModelNew`.
    """
    names = [str(argument.name) for argument in arguments]
    try:
        init, keywords = _constructor(how["init"])
        args, kwargs = how["args"]
        call = ", ".join([*map(_text, args), *(f"**{_text(kwargs)}",)])
        call = call.replace(_DEVICE, f"{names[0]}.device")
        sizes = {w for text in (init, keywords, call) for w in _sizes(text)}
        known = {axis for a in arguments for t in a.shape or () for axis in _sizes(t)}
        lines = sizes_of_shapes(sizes & known, arguments)
    except (_NoNumber, NotInShapes, TypeError):
        return ""
    missing = [t for t in re.findall(r"<(\w+)>", call) if t not in names]
    if missing or not all(_PATH.fullmatch(paths[n]) for n in names if n in paths):
        return ""
    call = re.sub(r"<(\w+)>", r"\1", call)
    given = ", ".join(f"{paths[name]!r}: {name}" for name in names if name in paths)
    called = [
        f"_model = _kernel_gym_model({init}, {keywords}, {{{given}}})",
        f"return _model({call})",
    ]
    if function:
        called = ["import torch", f"return {function}({call})"]
    inner = "\n".join(f"    {line}" for line in [*lines, *called])
    helper = "" if function else _HELPER
    return f"{helper}\n\ndef {entry}({', '.join(names)}):\n{inner}\n"


_HELPER = """

def _kernel_gym_model(args, kwargs, tensors):
    key = repr((args, kwargs))
    if key not in _kernel_gym_models:
        _kernel_gym_models[key] = ModelNew(*args, **kwargs)
    model = _kernel_gym_models[key]
    for path, tensor in tensors.items():
        owner, _, name = path.rpartition(".")
        module = model.get_submodule(owner)
        for table in (module._parameters, module._buffers, module.__dict__):
            if name in table:
                table[name] = tensor
                break
        else:
            raise AttributeError(f"ModelNew has no parameter {path!r}, which Model has")
    return model


_kernel_gym_models = {}
"""


def _constructor(init: object) -> tuple[str, str]:
    if isinstance(init, dict) and "dict" in init:
        return "()", _text(init)
    values = init or ()
    if not isinstance(values, Iterable):
        raise _NoNumber
    return f"({''.join(f'{_text(one)}, ' for one in values)})", "{}"


def _text(value: object) -> str:
    if isinstance(value, Expression):
        return value.text
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, dict):
        if "tensor" in value and value["tensor"].isidentifier():
            return f"<{value['tensor']}>"
        if "reserved" in value:
            return _reserved(value)
        if "float" in value:
            return f'float("{float(value["float"])}")'
        if "dict" in value:
            return "{" + ", ".join(f"{k!r}: {_text(v)}" for k, v in value["dict"].items()) + "}"
        raise _NoNumber
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    raise _NoNumber


_DEVICE = "<device>"
"""Stands for the device of the first tensor."""


def _reserved(value: Mapping[str, Any]) -> str:
    shape = "".join(f"{_text(size)}, " for size in value["reserved"])
    maker, fill = ("full", f"{_text(value['fill'])}, ") if "fill" in value else ("empty", "")
    return f"torch.{maker}(({shape}), {fill}dtype=torch.{value['of']}, device={_DEVICE})"


def _sizes(text: str) -> set[str]:
    bare = re.sub(r"'[^']*'|\"[^\"]*\"|<\w+>", "", text)
    return set(re.findall(r"[A-Za-z_]\w*", bare)) - _WORDS
