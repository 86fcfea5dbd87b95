"""Ten problems in KernelBench's layout, each with right kernels in Triton and HIP and a wrong one.

The problems are stated by us. Kernels are written per row: an expression of a row `x` with its
parameters, which may be followed by `tl.sum` and the like. In HIP one thread adds a whole row in
fp64: in fp32 the error of a sum in order is some times that of PyTorch, which the judge refuses.
"""

from dataclasses import dataclass

MODEL = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self{init}):
        super().__init__()
        {own}

    def forward(self, x):
        return {forward}


rows = 256
width = 512


def get_inputs():
    return [torch.rand(rows, width)]


def get_init_inputs():
    return [{given}]
"""
ROW_TRITON = """
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def tanh_of(v):
    e = tl.exp(-2 * tl.abs(v))
    return tl.where(v < 0, -(1 - e) / (1 + e), (1 - e) / (1 + e))


@triton.jit
def kernel(x_ptr, {pointers}y_ptr, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    keep = at < width
    x = tl.load(x_ptr + row * width + at, mask=keep, other={other})
{loads}    y = {expression}
    {store}


class ModelNew(nn.Module):
    def __init__(self{init}):
        super().__init__()
        {own}

    def forward(self, x):
        rows, width = x.shape
        y = torch.empty({shape}, device=x.device)
        block = triton.next_power_of_2(width)
        kernel[(rows,)](x, {values}y, width, BLOCK=block)
        return y
"""
ROW_HIP = """
#include <hip/hip_runtime.h>
#include <stdint.h>

__global__ void kernel(const float* x, {pointers}float* y, int64_t rows, int64_t width) {{
  const int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const float* in = x + row * width;
  {body}
}}

extern "C" int model_new(const float* x, {pointers}float* y, {sizes}, hipStream_t stream) {{
  kernel<<<dim3((rows + 63) / 64), dim3(64), 0, stream>>>(x, {values}y, rows, width);
  return hipGetLastError();
}}
"""
EACH = "float* out = y + row * width;\n  for (int64_t i = 0; i < width; ++i) out[i] = {};"


@dataclass(frozen=True)
class RowModule:
    """A module that computes each row alone.

    Attributes:
        forward: The module's own expression of `x`.
        expression: The same in Triton, of a row.
        body: The same in HIP, of a row `in`.
        wrong: A text in the Triton expression, and what a wrong kernel has in its place.
        other: What is loaded beyond the row's end.
        parameters: The names of parameters, each as wide as a row.
        reduced: Whether a row becomes one number.
    """

    forward: str
    expression: str
    body: str
    wrong: tuple[str, str]
    other: str = "0.0"
    parameters: tuple[str, ...] = ()
    reduced: bool = False

    @property
    def module(self) -> str:
        """The problem in KernelBench's layout."""
        return MODEL.format(
            forward=self.forward, given="width" * bool(self.parameters), **self._own
        )

    @property
    def triton(self) -> str:
        """A right candidate in Triton: a class `ModelNew`."""
        loads = (f"    {p} = tl.load({p}_ptr + at, mask=keep)\n" for p in self.parameters)
        stores = ("tl.store(y_ptr + row * width + at, y, mask=keep)", "tl.store(y_ptr + row, y)")
        return ROW_TRITON.format(
            pointers="".join(f"{p}_ptr, " for p in self.parameters),
            loads="".join(loads),
            values="".join(f"self.{p}, " for p in self.parameters),
            expression=self.expression,
            other=self.other,
            store=stores[self.reduced],
            shape="rows, 1" if self.reduced else "rows, width",
            **self._own,
        )

    @property
    def wrong_triton(self) -> str:
        """The candidate with one mistake."""
        before, after = self.wrong
        assert before in self.expression
        return self.triton.replace(self.expression, self.expression.replace(before, after))

    def hip(self, axes: list[str]) -> str:
        """A right candidate in HIP; sizes are passed in the order of the task's axes."""
        return ROW_HIP.format(
            pointers="".join(f"const float* {p}, " for p in self.parameters),
            values="".join(f"{p}, " for p in self.parameters),
            sizes=", ".join(f"int64_t {axis}" for axis in axes),
            body=self.body,
        )

    @property
    def _own(self) -> dict[str, str]:
        lines = (f"self.{p} = nn.Parameter(torch.ones(width))" for p in self.parameters)
        own = "\n        ".join(lines) or "pass"
        return {"init": ", width" * bool(self.parameters), "own": own}


SUM = "double total = 0;\n  for (int64_t i = 0; i < width; ++i) total += {};\n  "
TEN = {
    "1_Relu": RowModule(
        "torch.relu(x - 0.5)",
        "tl.maximum(x - 0.5, 0.0)",
        EACH.format("fmaxf(in[i] - 0.5f, 0.f)"),
        ("0.0)", "0.01)"),
    ),
    "2_Softmax": RowModule(
        "torch.softmax(x, dim=1)",
        "tl.exp(x - tl.max(x, 0)) / tl.sum(tl.exp(x - tl.max(x, 0)), 0)",
        "float top = in[0];\n  for (int64_t i = 1; i < width; ++i) top = fmaxf(top, in[i]);\n  "
        + SUM.format("expf(in[i] - top)")
        + EACH.format("expf(in[i] - top) / (float)total"),
        ("/ tl.sum(tl.exp(x - tl.max(x, 0)), 0)", "/ (1 + tl.sum(tl.exp(x - tl.max(x, 0)), 0))"),
        other="float('-inf')",
    ),
    "3_RMSNorm": RowModule(
        "x * torch.rsqrt(x.pow(2).mean(1, keepdim=True) + 1e-5) * self.gain",
        "x * tl.rsqrt(tl.sum(x * x, 0) / width + 1e-5) * gain",
        SUM.format("in[i] * in[i]")
        + EACH.format("in[i] / sqrtf((float)(total / width) + 1e-5f) * gain[i]"),
        (" * gain", " * 1.0"),
        parameters=("gain",),
    ),
    "4_Sum": RowModule(
        "x.sum(dim=1, keepdim=True)",
        "tl.sum(x, 0)",
        SUM.format("in[i]") + "y[row] = (float)total;",
        ("tl.sum(x, 0)", "tl.sum(tl.where(at < width - 1, x, 0.0), 0)"),
        reduced=True,
    ),
    "5_Gelu": RowModule(
        "torch.nn.functional.gelu(x)",
        "0.5 * x * (1 + tl.erf(x * 0.7071067811865476))",
        EACH.format("0.5f * in[i] * (1.f + erff(in[i] * 0.70710678f))"),
        ("tl.erf(x * 0.7071067811865476)", "(2 * tl.sigmoid(1.702 * x) - 1)"),
    ),
    "6_L1Norm": RowModule(
        "x / (x.abs().sum(1, keepdim=True) + 1.0)",
        "x / (tl.sum(tl.abs(x), 0) + 1.0)",
        SUM.format("fabsf(in[i])") + EACH.format("in[i] / ((float)total + 1.f)"),
        ("tl.abs(x)", "x"),
    ),
    "7_Cumsum": RowModule(
        "torch.cumsum(x, dim=1)",
        "tl.cumsum(x.to(tl.float64), 0).to(tl.float32)",
        "double total = 0;\n  float* out = y + row * width;\n"
        "  for (int64_t i = 0; i < width; ++i) { total += in[i]; out[i] = (float)total; }",
        (".to(tl.float32)", ".to(tl.float32) - x"),
    ),
    "8_Affine": RowModule(
        "x * self.gain + self.shift",
        "x * gain + shift",
        EACH.format("in[i] * gain[i] + shift[i]"),
        ("+ shift", "- shift"),
        parameters=("gain", "shift"),
    ),
    "9_Max": RowModule(
        "torch.amax(x, dim=1, keepdim=True)",
        "tl.max(x, 0)",
        "float top = in[0];\n  for (int64_t i = 1; i < width; ++i) top = fmaxf(top, in[i]);\n"
        "  y[row] = top;",
        ("tl.max(x, 0)", "tl.max(tl.where(at % 2 > 0, x, float('-inf')), 0)"),
        other="float('-inf')",
        reduced=True,
    ),
    "10_Center": RowModule(
        "torch.tanh(x - x.mean(dim=1, keepdim=True))",
        "tanh_of(x - tl.sum(x, 0) / width)",
        SUM.format("in[i]") + EACH.format("tanhf(in[i] - (float)(total / width))"),
        ("tl.sum(x, 0) / width", "tl.sum(x, 0) / BLOCK"),
    ),
}
"""The modules by the name of their file."""
