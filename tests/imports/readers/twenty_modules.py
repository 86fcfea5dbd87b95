"""Twenty more problems in KernelBench's layout, each with a right and a wrong kernel in Triton.

The problems are stated by us. Fourteen are computed by row, the others by element. Some wrong
kernels are right at the one size that KernelBench checks, or within its tolerance.
"""

from dataclasses import dataclass

from tests.imports.readers.ten_modules import TEN, RowModule

ROWS = {
    "11_Sigmoid": RowModule(
        "torch.sigmoid(x)", "tl.sigmoid(x)", "", ("tl.sigmoid(x)", "tl.sigmoid(1.05 * x)")
    ),
    "12_LayerNorm": RowModule(
        "torch.nn.functional.layer_norm(x, x.shape[1:], self.gain, self.shift)",
        "(x - tl.sum(x, 0) / width) * tl.rsqrt(tl.sum(tl.where(keep, (x - tl.sum(x, 0) / width) * "
        "(x - tl.sum(x, 0) / width), 0.0), 0) / width + 1e-5) * gain + shift",
        "",
        ("+ 1e-5", "+ 1e-2"),
        parameters=("gain", "shift"),
    ),
    "13_LogSoftmax": RowModule(
        "torch.log_softmax(x, dim=1)",
        "x - tl.max(x, 0) - tl.log(tl.sum(tl.exp(x - tl.max(x, 0)), 0))",
        "",
        ("tl.exp(x - tl", "tl.exp(tl.where(keep, x, 0.0) - tl"),
        other="float('-inf')",
    ),
    "14_Silu": RowModule(
        "torch.nn.functional.silu(x)",
        "x * tl.sigmoid(x)",
        "",
        ("tl.sigmoid(x)", "tl.sigmoid(1.1 * x)"),
    ),
    "15_Hardswish": RowModule(
        "torch.nn.functional.hardswish(8 * x - 4)",
        "(8 * x - 4) * tl.minimum(tl.maximum(8 * x - 1, 0.0), 6.0) / 6",
        "",
        ("tl.minimum(tl.maximum(8 * x - 1, 0.0), 6.0)", "tl.maximum(8 * x - 1, 0.0)"),
    ),
    "16_L2Norm": RowModule(
        "x / torch.sqrt(x.pow(2).sum(1, keepdim=True) + 1.0)",
        "x / tl.sqrt(tl.sum(x * x, 0) + 1.0)",
        "",
        ("tl.sum(x * x, 0)", "tl.sum(tl.where(at % 64 > 0, x * x, 0.0), 0)"),
    ),
    "17_MeanDistance": RowModule(
        "(x - 0.5).abs().mean(1, keepdim=True)",
        "tl.sum(tl.where(keep, tl.abs(x - 0.5), 0.0), 0) / width",
        "",
        ("tl.where(keep, tl.abs(x - 0.5), 0.0)", "tl.abs(x - 0.5)"),
        reduced=True,
    ),
    "18_Variance": RowModule(
        "x.var(dim=1, keepdim=True, unbiased=False)",
        "tl.sum(tl.where(keep, (x - tl.sum(x, 0) / width) * (x - tl.sum(x, 0) / width), 0.0), 0) "
        "/ width",
        "",
        ("tl.sum(x, 0) / width", "tl.sum(x, 0) / BLOCK"),
        reduced=True,
    ),
    "19_Softplus": RowModule(
        "torch.nn.functional.softplus(x)",
        "tl.maximum(x, 0.0) + tl.log(1 + tl.exp(-tl.abs(x)))",
        "",
        ("tl.maximum(x, 0.0)", "tl.maximum(x, 0.001)"),
    ),
    "20_Elu": RowModule(
        "torch.nn.functional.elu(x - 0.5)",
        "tl.where(x > 0.5, x - 0.5, tl.exp(tl.minimum(x - 0.5, 0.0)) - 1)",
        "",
        ("tl.exp(tl.minimum(x - 0.5, 0.0)) - 1", "tl.maximum(x - 0.5, -1.0)"),
    ),
    "21_LeakyRelu": RowModule(
        "torch.nn.functional.leaky_relu(x - 0.5, 0.01)",
        "tl.where(x > 0.5, x - 0.5, 0.01 * (x - 0.5))",
        "",
        ("0.01 * (x - 0.5)", "0.0 * (x - 0.5)"),
    ),
    "22_SquaredSum": RowModule(
        "x.pow(2).sum(1, keepdim=True)",
        "tl.sum(x * x, 0)",
        "",
        ("x * x", "tl.where(at < 512, x * x, 0.0)"),
        reduced=True,
    ),
    "23_Min": RowModule(
        "torch.amin(x, dim=1, keepdim=True)",
        "tl.min(x, 0)",
        "",
        ("tl.min(x, 0)", "tl.min(tl.where(keep, x, 0.5), 0) + 1e-6"),
        other="float('inf')",
        reduced=True,
    ),
    "24_ScaledNorm": RowModule(
        "x * torch.rsqrt(x.pow(2).mean(1, keepdim=True) + 1e-5) * self.gain",
        "x * tl.rsqrt(tl.sum(x * x, 0) / width + 1e-5) * gain",
        "",
        ("1e-5", "1.5e-5"),
        parameters=("gain",),
    ),
}
MODEL = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self{init}):
        super().__init__()
        {own}

    def forward(self, {names}):
        return {forward}


{sizes}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return [{given}]
"""
TRITON = """
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel({pointers}, y_ptr, {sizes}, total, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = at < total
    {body}
    tl.store(y_ptr + at, y, mask=keep)


class ModelNew(nn.Module):
    def __init__(self{init}):
        super().__init__()
        {own}

    def forward(self, {names}):
        {shapes}
        y = torch.empty({result}, device={first}.device)
        total = y.numel()
        kernel[(triton.cdiv(total, 128),)]({values}, y, {sizes}, total, BLOCK=128)
        return y
"""


@dataclass(frozen=True)
class ElementModule:
    """A module whose kernel computes each element of the result alone.

    Attributes:
        inputs: The shape of each input, by name.
        sizes: The value of each size.
        forward: The module's own expression.
        shapes: The line that reads the sizes from the inputs.
        result: The shape of the result.
        body: The lines of the kernel, which set `y` from `at` and `keep`.
        wrong: A text in the body, and what a wrong kernel has in its place.
        layer: The constructor of a submodule, without its module.
        parameters: Names of its parameters, which the kernel takes after the inputs.
    """

    inputs: dict[str, str]
    sizes: dict[str, int]
    forward: str
    shapes: str
    result: str
    body: tuple[str, ...]
    wrong: tuple[str, str]
    layer: str = ""
    parameters: tuple[str, ...] = ()

    @property
    def module(self) -> str:
        """The problem in KernelBench's layout."""
        return MODEL.format(
            forward=self.forward,
            sizes="\n".join(f"{name} = {value}" for name, value in self.sizes.items()),
            inputs=", ".join(f"torch.rand({shape})" for shape in self.inputs.values()),
            given=self._layer_sizes,
            **self._own,
        )

    @property
    def triton(self) -> str:
        """A right candidate: a class `ModelNew`."""
        parameters = [f"self.layer.{name}" for name in self.parameters]
        return TRITON.format(
            pointers=", ".join(f"{name}_ptr" for name in (*self.inputs, *self.parameters)),
            sizes=", ".join(self.sizes),
            body="\n    ".join(self.body),
            shapes=self.shapes,
            result=self.result,
            first=next(iter(self.inputs)),
            values=", ".join((*self.inputs, *parameters)),
            **self._own,
        )

    @property
    def wrong_triton(self) -> str:
        """The candidate with one mistake."""
        before, after = self.wrong
        assert self.triton.count(before) == 1, before
        return self.triton.replace(before, after)

    @property
    def _layer_sizes(self) -> str:
        return self.layer.partition("(")[2].rstrip(")")

    @property
    def _own(self) -> dict[str, str]:
        return {
            "init": f", {self._layer_sizes}" if self.layer else "",
            "own": f"self.layer = nn.{self.layer}" if self.layer else "pass",
            "names": ", ".join(self.inputs),
        }


ADDED = (
    "    left = tl.load({} + k, mask=keep, other=0.0)",
    "    right = tl.load({}, mask=keep, other=0.0)",
    "    added += left.to(tl.float64) * right",
)
ELEMENTS = {
    "25_MatMul": ElementModule(
        {"a": "rows, inner", "b": "inner, cols"},
        {"rows": 64, "inner": 128, "cols": 96},
        "a @ b",
        "(rows, inner), cols = a.shape, b.shape[1]",
        "rows, cols",
        (
            "row, col = at // cols, at % cols",
            "added = tl.zeros([BLOCK], tl.float64)",
            "for k in range(inner):",
            ADDED[0].format("a_ptr + row * inner"),
            ADDED[1].format("b_ptr + k * cols + col"),
            ADDED[2],
            "y = added.to(tl.float32)",
        ),
        ("range(inner)", "range(inner // 16 * 16)"),
    ),
    "26_LinearRelu": ElementModule(
        {"x": "rows, width"},
        {"rows": 64, "width": 128, "out": 96},
        "torch.relu(self.layer(x))",
        "(rows, width), out = x.shape, self.layer.weight.shape[0]",
        "rows, out",
        (
            "row, col = at // out, at % out",
            "added = tl.zeros([BLOCK], tl.float64)",
            "for k in range(width):",
            ADDED[0].format("x_ptr + row * width"),
            ADDED[1].format("weight_ptr + col * width + k"),
            ADDED[2],
            "added += tl.load(bias_ptr + col, mask=keep, other=0.0)",
            "y = tl.maximum(added, 0.0).to(tl.float32)",
        ),
        ("added += tl.load(bias_ptr + col", "added += 0 * tl.load(bias_ptr + col"),
        layer="Linear(width, out)",
        parameters=("weight", "bias"),
    ),
    "27_OuterSum": ElementModule(
        {"a": "rows", "b": "cols"},
        {"rows": 256, "cols": 512},
        "a[:, None] * 2 + b[None, :]",
        "rows, cols = a.shape[0], b.shape[0]",
        "rows, cols",
        (
            "left = tl.load(a_ptr + at // cols, mask=keep)",
            "right = tl.load(b_ptr + at % cols, mask=keep)",
            "y = left * 2 + right",
        ),
        ("left * 2 + right", "left * 2 - right"),
    ),
    "28_Transpose": ElementModule(
        {"x": "rows, cols"},
        {"rows": 256, "cols": 256},
        "(x * 3).transpose(0, 1).contiguous()",
        "rows, cols = x.shape",
        "cols, rows",
        ("y = tl.load(x_ptr + at % rows * cols + at // rows, mask=keep) * 3",),
        ("at % rows * cols + at // rows", "(at % rows * rows + at // rows) % total"),
    ),
    "29_ColumnMean": ElementModule(
        {"x": "rows, cols"},
        {"rows": 256, "cols": 512},
        "x.mean(dim=0)",
        "rows, cols = x.shape",
        "cols",
        (
            "added = tl.zeros([BLOCK], tl.float64)",
            "for row in range(rows):",
            "    added += tl.load(x_ptr + row * cols + at, mask=keep, other=0.0).to(tl.float64)",
            "y = (added / rows).to(tl.float32)",
        ),
        ("added / rows", "added / 256.0"),
    ),
    "30_Distance": ElementModule(
        {"a": "rows, width", "b": "rows, width"},
        {"rows": 256, "width": 512},
        "(a - b).pow(2).sum(1)",
        "rows, width = a.shape",
        "rows",
        (
            "added = tl.zeros([BLOCK], tl.float64)",
            "for k in range(width):",
            "    left = tl.load(a_ptr + at * width + k, mask=keep, other=0.0).to(tl.float64)",
            "    right = tl.load(b_ptr + at * width + k, mask=keep, other=0.0).to(tl.float64)",
            "    added += (left - right) * (left - right)",
            "y = added.to(tl.float32)",
        ),
        ("(left - right) * (left - right)", "tl.abs(left - right)"),
    ),
}
TWENTY = ROWS | ELEMENTS
THIRTY = TEN | TWENTY
"""All modules by the name of their file. Those of `TWENTY` have no kernel in HIP."""
