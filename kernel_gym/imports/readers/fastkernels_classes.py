"""Finds the class of an operation of FastKernels among those of its module, without running it."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from kernel_gym.imports.readers.fastkernels_stated import CLASSES


def class_of(
    stem: str,
    classes: Mapping[str, ast.ClassDef],
    scenarios: Sequence[Mapping[str, object]] | None = None,
) -> ast.ClassDef | None:
    """Returns the class of an operation, or None.

    It is named like the operation, or with a part of its first word, as `YOLOConv` of
    `yolov10_conv`, or without it, as `FeedForward` of `flux_feedforward`. An only class needs no
    name. A class of which another one consists is a part of the operation. Where names do not
    tell, or the named class does not take the arguments of the captured calls, it is the only
    class that takes them.
    """
    named = _named_like(stem, classes)
    calls = [one for one in scenarios or () if isinstance(one.get("inputs"), dict)]
    if not calls or (named is not None and _takes(named, calls[0])):
        return named
    if CLASSES.get(stem) in classes:
        return classes[CLASSES[stem]]
    whole = [node for node in classes.values() if not _is_part(node, classes)]
    fits = [node for node in whole if _takes(node, calls[0])]
    most = max((_given(node, calls[0]) for node in fits), default=0)
    best = [node for node in fits if _given(node, calls[0]) == most]
    return best[0] if len(best) == 1 else named


def _named_like(stem: str, classes: Mapping[str, ast.ClassDef]) -> ast.ClassDef | None:
    first, _, rest = stem.partition("_")
    tail = rest.replace("_", "")
    heads = [first[:count] for count in range(len(first), 0, -1)]
    lower = {name.lower(): node for name, node in classes.items()}
    repeated = len(lower) < len(classes)
    for head in heads:
        if (node := lower.get(head + tail)) and not repeated:
            return node
    if tail in lower and not _is_part(lower[tail], classes):
        return lower[tail]
    return next(iter(classes.values())) if len(classes) == 1 else None


def _takes(node: ast.ClassDef, call: Mapping[str, Any]) -> bool:
    """Whether the forward method of a class takes the arguments of a captured call."""
    names, needed = parameters_of(node, "forward")
    inputs = {name for name, value in call["inputs"].items() if value is not None}
    return needed <= call["inputs"].keys() and (inputs <= names or "**" in names)


def _given(node: ast.ClassDef, call: Mapping[str, Any]) -> int:
    """Returns how many captured arguments of the constructor a class takes."""
    return len((call.get("init_args") or {}).keys() & parameters_of(node)[0])


def _is_part(node: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> bool:
    """Whether another class names a class."""
    others = (one for other in classes.values() if other is not node for one in ast.walk(other))
    return any(isinstance(one, ast.Name) and one.id == node.name for one in others)


def parameters_of(model: ast.ClassDef, method: str = "__init__") -> tuple[set[str], set[str]]:
    """Returns the parameters of a method, and those without a default; `**` takes all names."""
    methods = (n for n in model.body if isinstance(n, ast.FunctionDef) and n.name == method)
    function = next(methods, None)
    if function is None:
        return set(), set()
    given = function.args
    names = [arg.arg for arg in given.args if arg.arg != "self"]
    optional = names[len(names) - len(given.defaults) :] if given.defaults else []
    keywords = {keyword.arg for keyword in given.kwonlyargs} | ({"**"} if given.kwarg else set())
    return keywords.union(names), set(names).difference(optional)


def whole_numbers(model: ast.ClassDef) -> set[str]:
    """Returns the parameters of the constructor that are annotated as integers."""
    methods = (n for n in model.body if isinstance(n, ast.FunctionDef) and n.name == "__init__")
    return {
        argument.arg
        for function in methods
        for argument in [*function.args.args, *function.args.kwonlyargs]
        if isinstance(argument.annotation, ast.Name) and argument.annotation.id == "int"
    }
