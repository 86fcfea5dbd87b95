"""Makes the parts of a problem's file from a space of sizes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kernel_gym.imports.authoring.space import SizeSpace
from kernel_gym.imports.authoring.tracer import CodeError
from kernel_gym.imports.traced.code import Code, drawn_directly, needed_nodes, write
from kernel_gym.imports.traced.file import AxisText, Draft
from kernel_gym.imports.traced.graph import GraphError
from kernel_gym.imports.traced.template import NodeTemplate

if TYPE_CHECKING:
    from kernel_gym.imports.tracing.evidence import Spread

_CATEGORIES = {
    "Attention": "scaled_dot_product",
    "Convolution": r"\.conv",
    "Pooling": "pool",
    "Loss": "loss|kl_div",
    "Normalization": "norm",
    "MatMul": r"linear|matmul|\.mm|bmm|addmm|einsum",
    "Quantization": "float8|int8",
    "Reduce-and-scan": "cum|softmax|sum|mean|max|min|logsumexp",
    "Index": r"index|gather|scatter|embedding|\.arg(max|min|sort)",
}
_INTEGERS = frozenset({"int8", "uint8", "int16", "int32", "float8_e4m3fnuz", "float8_e5m2fnuz"})
_CODES = _INTEGERS | {"float8_e4m3fn", "float8_e5m2"}


_MIN_SPREAD, _MAX_SPREAD = 1e-6, 1e3
"""Parameters with less or more spread were never given a value."""

_FEW = 64
"""Fewer elements of a matrix say nothing of its mean. Statistics are those of small sizes."""


def make_draft(
    name: str,
    space: SizeSpace,
    spreads: Mapping[str, Spread],
    source: str,
    train: Mapping[str, Sequence[Mapping[str, int]]],
    production: Mapping[str, Sequence[Mapping[str, int]]],
    adversarial: Sequence[Mapping[str, int]],
    distributions: Sequence[str],
    real: bool,
) -> Draft:
    """Makes a draft. `real` draws inputs from all numbers where the code draws from 0 to 1.

    Raises:
        CodeError: An input is made in a way that cannot be written.
    """
    arguments = used_arguments(space)
    names = frozenset(str(argument.name) for argument in arguments)
    taken = names | {axis.name for axis in space.axes} | {"self", "torch", "aten", "values"}
    try:
        forward = write(space.forward, space.traced.forward.outputs, taken)
        construction, draws = _draws(space, arguments, spreads, taken, real)
    except GraphError as error:
        raise CodeError(str(error)) from None
    ends = space.traced.forward.outputs
    return Draft(
        name=name,
        summary=_summary(space, name),
        doc=space.traced.doc,
        category=_category(space),
        level=min(5, 1 + len({n.op for n in space.forward if n.op.startswith("aten")}) // 3),
        source=source,
        arguments=arguments,
        parameters=[n for n in map(_name, arguments) if space.traced.kinds[n] != "input"],
        outputs=_outputs(space),
        axes=[AxisText(a.name, a.low, max(a.high, a.low), a.multiple) for a in space.axes],
        train=train,
        production=production,
        adversarial=adversarial,
        distributions=distributions,
        construction=construction,
        draws=draws,
        forward=forward,
        results=[forward.results[end] for end in ends],
    )


def _name(argument: NodeTemplate) -> str:
    return str(argument.name)


def used_arguments(space: SizeSpace) -> list[NodeTemplate]:
    """Returns the arguments that outputs depend on: inputs first, then parameters and buffers."""
    needed = needed_nodes(space.forward, space.traced.forward.outputs)
    kinds = space.traced.kinds
    used = [n for i, n in enumerate(space.forward) if n.op == "argument" and i in needed]
    order = {"input": 0, "parameter": 1, "buffer": 2}
    return sorted(used, key=lambda node: order[kinds[str(node.name)]])


def _draws(
    space: SizeSpace,
    arguments: Sequence[NodeTemplate],
    spreads: Mapping[str, Spread],
    taken: frozenset[str],
    real: bool,
) -> tuple[Code, dict[str, str]]:
    """Returns the code that makes inputs, and the expression of each argument."""
    kinds, places = space.traced.kinds, space.traced.construction.outputs
    drawn = {
        str(a.name): _parameter(a, spreads.get(str(a.name), {}))
        for a in arguments
        if kinds[str(a.name)] == "parameter" or _is_statistic(str(a.name))
    }
    made = {str(a.name): places[str(a.name)] for a in arguments if str(a.name) not in drawn}
    own = frozenset({"workload", "generator", "distribution"})
    ends = list(made.values())
    free = drawn_directly(space.construction, ends) if real else frozenset()
    code = write(space.construction, ends, taken | own, random=True, real=free)
    used = " ".join(drawn.values())
    code.sizes |= {axis.name for axis in space.axes if re.search(rf"\b{axis.name}\b", used)}
    results = {name: code.results[place] for name, place in made.items()}
    return code, {str(a.name): {**drawn, **results}[str(a.name)] for a in arguments}


def _is_statistic(name: str) -> bool:
    return name.endswith(("running_mean", "running_var"))


def _parameter(node: NodeTemplate, spread: Spread) -> str:
    """Returns the expression that draws a parameter like the original's, but not trivial."""
    shape = f"({', '.join(node.shape or ())}{',' * (len(node.shape or ()) == 1)})"
    tail = f"{shape}, torch.{node.dtype}, generator)"
    if str(node.name).endswith("running_var"):
        return f"values.positive({tail}"
    mean, std = float(spread.get("mean", 0.0)), float(spread.get("std", 0.0))
    if _is_unset(mean, std, spread):
        if len(node.shape or ()) > 1:
            return f"values.weight(1.0, {tail}"
        mean, std, spread = 0.0, 0.0, {**spread, "constant": True}
    if spread.get("constant", True):
        return f"values.around({round(mean, 6)}, 0.3, {tail}"
    if len(node.shape or ()) < 2:
        return f"values.around({round(mean, 6)}, {max(round(std, 4), 0.05)}, {tail}"
    fan = 1
    for size in spread["shape"][1:]:
        fan *= size
    if spread["shape"][0] * fan < _FEW:
        mean, std = 0.0, math.hypot(mean, std)
    gain = std * fan**0.5
    if 0.3 < gain < 3:
        return f"values.weight({round(gain, 3)}, {tail}"
    return f"values.around({round(mean, 6)}, {round(std, 6)}, {tail}"


def _is_unset(mean: float, std: float, spread: Spread) -> bool:
    """Whether a parameter is memory that was only reserved."""
    usual = abs(mean) + std < _MAX_SPREAD and (spread.get("constant", True) or std > _MIN_SPREAD)
    return bool(spread.get("unset")) or not usual


def _outputs(space: SizeSpace) -> list[tuple[str, str, str, str]]:
    ends = space.traced.forward.outputs
    names = ["out"] if len(ends) == 1 else [f"out_{i}" for i in range(len(ends))]
    taken = {str(argument.name) for argument in used_arguments(space)}
    names = [f"{name}_" if name in taken else name for name in names]
    rows = []
    for name, end in zip(names, ends, strict=True):
        node = space.forward[end]
        if node.dtype is None:
            raise CodeError("it returns a tensor of a dtype that kernels do not take")
        shape = ", ".join(node.shape) if node.shape is not None else "see the code"
        rows.append((name, node.dtype, _check(space, node), shape))
    return rows


def _check(space: SizeSpace, node: NodeTemplate) -> str:
    rounds = any(
        n.op.split(".")[1] in ("round", "to", "_to_copy") for n in space.forward if "." in n.op
    )
    if node.dtype in _CODES and rounds:
        return "CUSTOM"
    floating = str(node.dtype).startswith(("float", "bfloat"))
    return "CLOSE" if floating else "EXACT"


def _summary(space: SizeSpace, name: str) -> str:
    lines = [line.strip() for line in space.traced.doc.strip().splitlines() if line.strip()]
    return lines[0][:160] if lines else f"{name.replace('_', ' ')}: see the code"


def _category(space: SizeSpace) -> str:
    operators = [node.op for node in space.forward if node.op.startswith("aten.")]
    text = " ".join(operators)
    matching = [c for c, pattern in _CATEGORIES.items() if re.search(pattern, text)]
    if len(matching) > 1 and len(operators) > 3:
        return "Attention" if "Attention" in matching else "Fusion"
    return matching[0] if matching else "Math"
