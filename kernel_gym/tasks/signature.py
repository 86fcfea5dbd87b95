"""The exact prototypes that candidates implement, made from a problem's arguments and outputs."""

from __future__ import annotations

import torch

from kernel_gym.tasks.problem import Output, Problem, ScalarArg, TensorArg

C_TYPES = {
    torch.float16: "__half",
    torch.bfloat16: "__hip_bfloat16",
    torch.float32: "float",
    torch.float64: "double",
    torch.float8_e4m3fnuz: "__hip_fp8_e4m3_fnuz",
    torch.float8_e5m2fnuz: "__hip_fp8_e5m2_fnuz",
    torch.float8_e4m3fn: "__hip_fp8_e4m3",
    torch.float8_e5m2: "__hip_fp8_e5m2",
    torch.int8: "int8_t",
    torch.uint8: "uint8_t",
    torch.int16: "int16_t",
    torch.int32: "int32_t",
    torch.int64: "int64_t",
    torch.bool: "bool",
}
"""Element type of a device pointer by torch dtype."""
C_SCALARS = {int: "int64_t", float: "float"}


def _c_argument(arg: TensorArg | ScalarArg) -> str:
    if isinstance(arg, ScalarArg):
        return f"{C_SCALARS[arg.type]} {arg.name}"
    const = "" if arg.in_place else "const "
    return f"{const}{C_TYPES[arg.dtype]}* {arg.name}"


def c_prototype(problem: Problem) -> str:
    """Returns the prototype of the HIP launcher: arguments, outputs, `c_sizes`, stream."""
    first = problem.train[next(iter(problem.train))][0]
    parts = [_c_argument(arg) for arg in problem.args]
    parts += [f"{C_TYPES[out.dtype]}* {out.name}" for out in problem.outputs]
    parts += [f"int64_t {name}" for name in problem.c_sizes(first)]
    parts.append("hipStream_t stream")
    return f'extern "C" int {problem.entry}({", ".join(parts)})'


def python_prototype(problem: Problem) -> str:
    """Returns the prototype of the Triton entry. It returns a tensor or a tuple of tensors."""
    parts = [
        f"{arg.name}: {'torch.Tensor' if isinstance(arg, TensorArg) else arg.type.__name__}"
        for arg in problem.args
    ]
    count = len(problem.outputs)
    tensors = ", ".join(["torch.Tensor"] * count)
    returned = tensors if count == 1 else f"tuple[{tensors}]"
    return f"def {problem.entry}({', '.join(parts)}) -> {returned}"


def describe_tensor(item: TensorArg | Output) -> str:
    """Returns one line: name, dtype, shape in terms of the axes, whether written in place."""
    dtype = str(item.dtype).removeprefix("torch.")
    written = " (written in place)" if isinstance(item, TensorArg) and item.in_place else ""
    if isinstance(item, Output) and item.place:
        written = f" (the argument `{item.place}` itself, no copy of it)"
    return f"{item.name}: {dtype}[{item.shape}]{written}"


def describe_argument(arg: TensorArg | ScalarArg) -> str:
    """Returns one line on an argument for the prompt."""
    if isinstance(arg, TensorArg):
        return describe_tensor(arg)
    legal = f", {min(arg.values):g} to {max(arg.values):g}" if arg.values else ""
    if not arg.ranged:
        legal = ", one of " + ", ".join(f"{value:g}" for value in arg.values)
    return f"{arg.name}: {arg.type.__name__}{legal}"
