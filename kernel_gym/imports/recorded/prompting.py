"""The parts of a prompt that are special to tasks made of recorded calls."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

from kernel_gym.imports.recorded.calls import TensorForm
from kernel_gym.imports.recorded.templates import CallTemplate, is_contiguous
from kernel_gym.inert import inert_line, shown
from kernel_gym.tasks.names import LANGUAGES, Mode

MAX_CALL = 1000
"""Most characters of one call in a prompt."""
MAX_DEPTH = 8
"""Most levels of lists of an argument that are shown."""
MAX_ITEMS = 32
"""Most items of a list that are shown."""
MAX_ITEM = 100
"""Most characters of one item."""
_RULES = """\
- Submit one Python module with the functions above. They may be called in any order, with other \
values, strides and sizes.
- The work happens in your own {kernels}. On the host, operators of PyTorch that \
allocate, view, fill, copy and concatenate are allowed, and their time counts. {operators} \
The host may read at most 4096 bytes of device memory in a call.
- Arguments that the suite's own code does not change must not be written."""

_KERNELS = {
    "triton": "`@triton.jit` kernels",
    "hip": "HIP kernels, which one call of `load_inline` builds at the top of the module",
}
"""The kernels of a candidate by its language."""


def rules(mode: Mode, own_operators: Iterable[str]) -> str:
    """Returns the rules for a source.

    Args:
        mode: The mode of the task.
        own_operators: Names of the operators that compute and that the suite's own code runs.
    """
    names = sorted(name.removeprefix("aten::") for name in own_operators)
    kernels = _KERNELS[LANGUAGES[mode]]
    if not mode.has_start_kernel or not names:
        return _RULES.format(kernels=kernels, operators="Operators that compute are refused.")
    allowed = (
        f"Of operators that compute, only those of the start kernel are allowed ({', '.join(names)}"
        "), for no more time than there."
    )
    return _RULES.format(kernels=kernels, operators=allowed)


def describe_calls(
    functions: Sequence[str], templates: Sequence[CallTemplate], made: Container[int]
) -> str:
    """Lists the functions to define, and the calls of them.

    Args:
        functions: The names of the functions.
        templates: The forms of calls.
        made: The numbers of the forms that have a workload.
    """
    names = ", ".join(f"`{name}`" for name in functions)
    lines = [f"Define {names}, each with the parameters and results of the suite's own code."]
    for number, template in enumerate(templates):
        left_out = "" if number in made else " (in the suite's tests; it is not made here)"
        lines.append(f"- call {number}: {describe_call(template)}{left_out}")
    return "\n".join(lines)


def describe_call(template: CallTemplate) -> str:
    """Returns a call as Python text; tensors are their types, sizes and layouts."""
    tensors = [
        f"{form.dtype}[{', '.join(shape)}]{_layout(form)}"
        for form, shape in zip(template.call.tensors, template.shapes, strict=True)
    ]
    args = [_argument(tree, tensors) for tree in template.call.args]
    args += [f"{key}={_argument(tree, tensors)}" for key, tree in template.call.kwargs.items()]
    grid = "" if template.grid is None else f"[({', '.join(template.grid)})]"
    return f"{template.call.function}{grid}({', '.join(args)})"[:MAX_CALL]


def _argument(tree: object, tensors: Sequence[str], depth: int = 0) -> str:
    """Returns an argument as text. The tree comes from a recorder: it may hold anything."""
    if not isinstance(tree, dict) or len(tree) != 1 or depth > MAX_DEPTH:
        return "?"
    ((kind, value),) = tree.items()
    if kind == "tensor":
        known = type(value) is int and 0 <= value < len(tensors)
        return tensors[value] if known else "?"
    if kind in ("list", "tuple") and isinstance(value, list):
        inner = ", ".join(_argument(one, tensors, depth + 1) for one in value[:MAX_ITEMS])
        return f"[{inner}]" if kind == "list" else f"({inner})"
    if kind == "dict" and isinstance(value, dict):
        items = [f"{shown(k)}: {_argument(one, tensors, depth + 1)}" for k, one in value.items()]
        return f"{{{', '.join(items[:MAX_ITEMS])}}}"
    if kind in ("size", "name") and isinstance(value, str):
        return inert_line(value, MAX_ITEM)
    return f"torch.{inert_line(value, MAX_ITEM)}" if kind == "dtype" else shown(value)


def _layout(form: TensorForm) -> str:
    if form.padding:
        return " (padded rows)"
    dense = is_contiguous(form.shape, form.strides)
    return "" if dense else " (not contiguous)"
