"""How inputs are drawn that a definition names but does not make, by their names and dtypes.

SOL-ExecBench draws them by name as well. It makes weights of normalisations one and biases zero, so
that a kernel which ignores them passes; here they vary.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from kernel_gym.imports.readers.base import UnsupportedTask
from kernel_gym.imports.readers.definitions import TensorSpec

_NORM = re.compile(r"(norm|layernorm)\d*_(weight|bias)|norm_(weight|bias)")
_MATRIX = re.compile(r"(weight|_weights?|_projs?|_weight_matrix)\d*$")
_POSITIVE = re.compile(r"(^|_)(rstd|std|variance|var)\d*$")
_MASKS = frozenset({"x_mask", "text_mask", "aspect_ratio_mask", "drop_mask", "attention_mask"})
_UNIFORM = {"A": (-1.0, -0.001), "A_log": (-5.0, -1.0), "g": (-5.0, 0.0)}
_FLOATS = ("float64", "float32", "float16", "bfloat16")
_SMALL_FLOATS = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
_INTEGERS: Mapping[str, tuple[int, int]] = {
    "int8": (-128, 128),
    "uint8": (0, 256),
    "int16": (-1024, 1024),
    "int32": (-1024, 1024),
    "int64": (-1024, 1024),
    "bool": (0, 2),
}


def drawing(name: str, spec: TensorSpec, shape: Sequence[str]) -> str:
    """Returns an expression of PyTorch that draws an input.

    Args:
        name: The input's name.
        spec: Its dtype and description.
        shape: The expression of each of its sizes.

    Raises:
        UnsupportedTask: Kernels here do not take its dtype.
    """
    size = f"({', '.join(shape)}{',' * (len(shape) == 1)})"
    if spec.dtype in _INTEGERS:
        low, high = _INTEGERS[spec.dtype]
        return f"torch.randint({low}, {high}, {size}, dtype=torch.{spec.dtype})"
    normal = f"torch.randn{size}" if shape else "torch.randn(())"
    if spec.dtype in _SMALL_FLOATS:
        return f"{normal}.clamp(-2.0, 2.0).to(torch.{spec.dtype})"
    if spec.dtype not in _FLOATS:
        raise UnsupportedTask(
            f"the input {name} has the dtype {spec.dtype}, which kernels here do not take"
        )
    return f"({_real(name, spec, shape, size, normal)}).to(torch.{spec.dtype})"


def _real(name: str, spec: TensorSpec, shape: Sequence[str], size: str, normal: str) -> str:
    text = (spec.description or "").lower()
    square = len(shape) > 1 and shape[-1] == shape[-2]
    if match := _NORM.search(name):
        return f"{'1.0 + ' if 'weight' in match[0] else ''}0.3 * {normal}"
    if square and (name == "causal_mask" or ("causal" in text and "attention mask" in text)):
        return f"torch.full({size}, -1e4).triu(1)"
    if name in _MASKS or (name.endswith("_mask") and "binary" in text):
        return f"torch.randint(0, 2, {size})"
    if name in ("cos", "cos_cached", "rope_cos"):
        return f"torch.cos({normal})"
    if name in ("sin", "sin_cached", "rope_sin"):
        return f"torch.sin({normal})"
    if _POSITIVE.search(name):
        return f"{normal}.abs() + 0.1"
    if name in _UNIFORM:
        low, high = _UNIFORM[name]
        return f"torch.empty{size if shape else '(())'}.uniform_({low}, {high})"
    if ("softmax" in text and "output" in text) or name.endswith("attention_weights"):
        return f"torch.softmax({normal}, -1)"
    if len(shape) > 1 and _MATRIX.search(name):
        return f"{normal} / ({shape[-1]}) ** 0.5"
    return normal
