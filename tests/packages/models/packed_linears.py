"""Linear layers with 4-bit weights in the buffers of GPTQ's and AWQ's checkpoints.

They stand for those of GPTQModel, which transformers builds from a quantization and which needs
compiled parts. The formulas are the documented ones, written without code of the package.
"""

from __future__ import annotations

import torch
from torch import nn

PLACES = torch.arange(8)
OF_AWQ = torch.tensor([0, 2, 4, 6, 1, 3, 5, 7])
"""The column of each nibble of a word of AWQ."""


def words(codes):
    """Packs the last axis, eight codes a word, the first code into the lowest bits."""
    return (codes.unflatten(-1, (-1, 8)).long() << 4 * PLACES).sum(-1).to(torch.int32)


def nibbles(packed):
    """Unpacks words along the last axis."""
    return ((packed[..., None] >> (4 * PLACES).to(packed)) & 15).flatten(-2)


class PackedLinear(nn.Module):
    """Draws a weight, and computes `x @ (scale * (code - zero))` from its buffers.

    Args:
        inputs: Rows of the weight.
        outputs: Columns.
        form: `gptq` (zero points less one), `gptq_v2` or `awq`.
        group: Rows that share a scale and a zero point.
        bias: Whether it has a bias.
    """

    def __init__(self, inputs, outputs, form, group=128, bias=False):
        super().__init__()
        self.form, self.group = form, group
        codes = torch.randint(0, 16, (inputs, outputs))
        zeros = torch.randint(1, 16, (inputs // group, outputs))
        if form == "awq":
            self.qweight = nn.Buffer(words(codes.unflatten(1, (-1, 8))[..., OF_AWQ].flatten(1)))
            self.qzeros = nn.Buffer(words(zeros.unflatten(1, (-1, 8))[..., OF_AWQ].flatten(1)))
        else:
            self.qweight = nn.Buffer(words(codes.T.contiguous()).T.contiguous())
            self.qzeros = nn.Buffer(words(zeros - 1 if form == "gptq" else zeros))
            self.g_idx = nn.Buffer((torch.arange(inputs) // group).int())
        scales = 0.02 + 0.01 * torch.rand(inputs // group, outputs)
        self.scales = nn.Buffer((scales * 8 / inputs**0.5).half())
        self.bias = nn.Parameter(0.1 * torch.randn(outputs).half()) if bias else None

    def forward(self, x):
        codes, zeros = (nibbles(part) for part in (self.qweight, self.qzeros))
        if self.form == "awq":
            back = OF_AWQ.argsort()
            codes, zeros = (t.unflatten(1, (-1, 8))[..., back].flatten(1) for t in (codes, zeros))
            rows = torch.arange(len(codes), device=x.device) // self.group
        else:
            codes, rows = nibbles(self.qweight.T.contiguous()).T, self.g_idx.long()
            zeros = zeros + 1 if self.form == "gptq" else zeros
        weight = (codes - zeros[rows]).to(x.dtype) * self.scales[rows].to(x.dtype)
        out = x.flatten(0, -2) @ weight
        out = out.view(*x.shape[:-1], -1)
        return out if self.bias is None else out + self.bias


def pack(model, form, **values):
    """Replaces the linear layers of the decoder layers of a model by packed ones."""
    torch.manual_seed(5)
    for path, layer in [*model.named_modules()]:
        if type(layer) is nn.Linear and "layers." in path:
            packed = PackedLinear(layer.in_features, layer.out_features, form, **values)
            model.set_submodule(path, packed.eval())
