"""Writes a module of FastKernels with the sizes of a captured call, which the importer traces."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from kernel_gym.imports.readers import fastkernels_stated as stated

_HALVES = {"float16", "bfloat16"}
_LIMITS = """

class Number(int):
    item = int.__int__


class Limits(list):  # in place of a tensor, whose values a trace does not know
    numel = list.__len__

    def __getitem__(self, at):
        return Number(list.__getitem__(self, at))
""".splitlines()
Call = dict[str, Any]
Texts = Mapping[int, str]
"""The expression of each number that is a size."""


def sizes_of(call: Call) -> dict[str, int]:
    """Returns a name for each size in the shapes, and for inner widths; equal sizes are one.

    Args:
        call: `init` and `inputs`, with what `fastkernels_stated.prepared` has added.
    """
    shapes = [one["shape"] for one in call["inputs"].values() if isinstance(one, dict)]
    inner = stated.inner_sizes(call["init"])
    known = {name: call["init"][name] for name in call.get("product", [])}
    product = math.prod(known.values())
    if "positions" in call:
        known["positions"] = shapes[0][call["positions"]]
    every = (n for shape in [*shapes, inner] for n in shape if n != product)
    return known | {f"size_{n}": n for n in every if type(n) is int and n > 1}


def _texts(call: Call, sizes: Mapping[str, int]) -> dict[int, str]:
    texts = {n: name for name, n in sizes.items() if name.startswith("size_")}
    if product := call.get("product"):
        texts[math.prod(sizes[name] for name in product)] = " * ".join(product)
    return texts


def traced_text(call: Call, module: str, target: str) -> str:
    """Returns a module with the sizes of a call, around the suite's class.

    Args:
        call: See `sizes_of`.
        module: The file of the class.
        target: The class.
    """
    sizes, ends = sizes_of(call), stated.lengths(call["inputs"])
    texts = _texts(call, sizes)
    dtypes = {one["dtype"] for one in call["inputs"].values() if isinstance(one, dict)} & _HALVES
    default = min(dtypes) if dtypes else "float32"
    own = call.get("product", [])
    given = (f"{k!r}: {k if k in own else _named(v, texts)}" for k, v in call["init"].items())
    lines = [
        "import torch",
        "from types import SimpleNamespace",
        f"import {module.removesuffix('.py').replace('/', '.')} as suite",
        "",
        *(f"suite.{name} = suite.{known}" for name, known in call.get("aliases", {}).items()),
        *(f"{name} = {size}" for name, size in sizes.items()),
        "",
        "",
        f"class Model(suite.{target}):",
        "    def __init__(self, **given):",
        f"        torch.set_default_dtype(torch.{default})",
        "        try:",
        "            super().__init__(**given)",
        "        finally:",
        "            torch.set_default_dtype(torch.float32)",
        *_forward(call, ends, texts),
        *(_LIMITS if ends else []),
        "",
        "",
        "def make_init():",
        f"    return {{{', '.join(given)}}}",
        "",
        "",
        "def make_inputs():",
        "    return {",
        *(f"        {k!r}: {_input(k, call, texts)}," for k in call["inputs"] if k not in ends),
        "    }",
        "",
    ]
    return "\n".join(lines)


def _forward(call: Call, ends: Mapping[str, int], texts: Texts) -> list[str]:
    """Returns the lines of a `forward` that makes the limits of a sequence, or has another name."""
    method = call.get("method", "forward")
    if not ends and method == "forward":
        return []
    return [
        "",
        "    def forward(self, **given):",
        *(f"        given[{n!r}] = Limits([0, {_named(end, texts)}])" for n, end in ends.items()),
        f"        return super().{method}(**given)",
    ]


def _named(value: object, texts: Texts) -> str:
    """Returns the expression of an argument, with sizes in place of numbers."""
    if isinstance(value, list):
        return f"[{', '.join(_named(one, texts) for one in value)}]"
    if isinstance(value, dict):
        given = value.get("namespace") or value.get("given", {})
        kind = "SimpleNamespace" if "namespace" in value else f"suite.{value['class']}"
        return f"{kind}({', '.join(f'{k}={_named(v, texts)}' for k, v in given.items())})"
    return texts[value] if type(value) is int and value in texts else repr(value)


def _input(name: str, call: Call, texts: Texts) -> str:
    """Returns the expression of an argument of `forward`."""
    spec = call["inputs"][name]
    if not isinstance(spec, dict):
        return _named(spec, texts) if name.startswith("max_seqlen") else repr(spec)
    alone = call.get("positions")
    named = (
        "positions" if place == alone else _named(n, texts) for place, n in enumerate(spec["shape"])
    )
    shape = f"({''.join(f'{one}, ' for one in named)})"
    dtype = spec["dtype"]
    if dtype == "bool" or not dtype.startswith(("float", "bfloat")):
        below = _named(stated.bound_of(name, call), texts)
        return f"torch.randint(0, {below}, {shape}, dtype=torch.{dtype})"
    return f"torch.randn({shape}).to(torch.{dtype})"
