"""The parts of a prompt that are special to tasks made of recorded calls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kernel_gym.imports.recorded.calls import TensorForm
from kernel_gym.imports.recorded.templates import CallTemplate, is_contiguous
from kernel_gym.tasks.names import Mode

_RULES = """\
- Submit one Python module with the functions above. They may be called in any order, with other \
values, strides and sizes.
- The work happens in your own `@triton.jit` kernels. On the host, operators of PyTorch that \
allocate, view, fill, copy and concatenate are allowed, and their time counts. {operators} \
The host may read at most 4096 bytes of device memory in a call.
- Arguments that the suite's own code does not change must not be written."""


def rules(mode: Mode, own_operators: Iterable[str]) -> str:
    """Returns the rules for a source.

    Args:
        mode: The mode of the task.
        own_operators: Names of the operators that compute and that the suite's own code runs.
    """
    names = sorted(name.removeprefix("aten::") for name in own_operators)
    if mode is not Mode.TRITON2TRITON or not names:
        return _RULES.format(operators="Operators that compute are refused.")
    allowed = (
        f"Of operators that compute, only those of the start kernel are allowed ({', '.join(names)}"
        "), for no more time than there."
    )
    return _RULES.format(operators=allowed)


def describe_calls(functions: Sequence[str], templates: Sequence[CallTemplate]) -> str:
    """Lists the functions to define, and the calls that are made of them."""
    names = ", ".join(f"`{name}`" for name in functions)
    lines = [f"Define {names}, each with the parameters and results of the suite's own code."]
    for number, template in enumerate(templates):
        tensors = [
            f"{form.dtype}[{', '.join(shape)}]{_layout(form)}"
            for form, shape in zip(template.call.tensors, template.shapes, strict=True)
        ]
        lines.append(f"- call {number}: {template.call.function} with {', '.join(tensors)}")
    return "\n".join(lines)


def _layout(form: TensorForm) -> str:
    dense = is_contiguous(form.shape, form.strides)
    return "" if dense else " (not contiguous)"
