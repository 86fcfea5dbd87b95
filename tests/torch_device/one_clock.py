"""A program for the simulated GPU: what its device charges for calls, and what the judge does.

It prints JSON: by the name of a call its two times in seconds, and how often a price was asked.
"""

import json

import kernel_gym

simulation = kernel_gym.enable_simulation(threads=1)

import torch  # noqa: E402
from torch.nn import functional  # noqa: E402

from kernel_gym.hardware import MI300X  # noqa: E402
from kernel_gym.judge.timing.torch_model import call_seconds  # noqa: E402
from kernel_gym.programs.operator_prices import OperatorPrices  # noqa: E402

x = torch.randn(512, 1024, device="cuda").half()
w = torch.randn(1024, device="cuda").half()
tall = torch.randn(3, 1024, 64, device="cuda").half()
wide = torch.randn(96, 512, device="cuda")
batch = torch.randn(2, 16, 32, 32, device="cuda")
filters, bias = torch.randn(24, 16, 3, 3, device="cuda"), torch.randn(24, device="cuda")
ids = torch.randint(0, 512, (96,), device="cuda")
heads = torch.randn(2, 4, 128, 64, device="cuda").half()
row = torch.randn(4096, device="cuda")

CALLS = {
    "softmax": (lambda x: functional.softmax(x, -1), x),
    "rms_norm": (lambda x, w: functional.rms_norm(x, (1024,), w), x, w),
    "rms_norm without weight": (lambda x: functional.rms_norm(x, (1024,)), x),
    "layer_norm": (lambda x, w: functional.layer_norm(x, (1024,), w), x, w),
    "group_norm": (lambda batch: functional.group_norm(batch, 4), batch),
    "batch_norm": (lambda v: functional.batch_norm(v, None, None, training=True), batch),
    "gelu": (functional.gelu, x),
    "add": (torch.add, x, x),
    "add of a number": (lambda x: x + 1.5, x),
    "add in place": (lambda x: x.add_(x), x.clone()),
    "add into a tensor": (lambda x, out: torch.add(x, x, out=out), x, x.clone()),
    "gate": (lambda x: functional.silu(x) * x, x),
    "sum": (torch.sum, x),
    "sum of rows": (lambda x: x.sum(-1), x),
    "sum of short rows": (lambda wide: wide.view(-1, 8).sum(-1), wide),
    "mm": (lambda x: x @ x.t(), x),
    "bmm": (torch.bmm, tall, tall.transpose(1, 2).contiguous()),
    "linear": (functional.linear, x.view(4, 128, 1024), x, x[:, 0].contiguous()),
    "embedding": (functional.embedding, ids, x),
    "cumsum": (lambda wide: wide.cumsum(-1), wide),
    "cumsum of one row": (lambda row: row.cumsum(0), row),
    "topk": (lambda wide: wide.topk(8), wide),
    "sort": (torch.sort, wide),
    "conv2d": (lambda v, f, b: functional.conv2d(v, f, b, padding=1), batch, filters, bias),
    "max_pool2d": (lambda batch: functional.max_pool2d(batch, 2), batch),
    "cross_entropy": (functional.cross_entropy, wide, ids),
    "binary cross-entropy": (functional.binary_cross_entropy_with_logits, wide, wide.sigmoid()),
    "logsumexp": (lambda wide: wide.logsumexp(-1), wide),
    "attention": (functional.scaled_dot_product_attention, heads, heads, heads),
    "causal attention": (
        lambda q: functional.scaled_dot_product_attention(q, q, q, is_causal=True),
        heads,
    ),
    "attention without a fused kernel": (functional.scaled_dot_product_attention, tall, tall, tall),
    "copy of a transposed tensor": (lambda wide: wide.t().contiguous(), wide),
    "conversion": (lambda wide: wide.half(), wide),
    "concatenation": (lambda wide, row: torch.cat([wide, wide]), wide, row),
    "masked_fill": (lambda wide: wide.masked_fill(wide > 0, 1.0), wide),
    "gather": (torch.take_along_dim, wide, ids.view(96, 1), 1),
    "zeros": (torch.zeros_like, x),
}


def meta(value):
    return value.to("meta") if isinstance(value, torch.Tensor) else value


def charged(call, values):
    before = simulation.seconds
    call(*values)
    return simulation.seconds - before


times, texts = {}, []
with torch.no_grad():
    for name, (call, *values) in CALLS.items():
        given = [meta(value) for value in values]
        times[name] = charged(call, values), call_seconds(lambda c=call, g=given: c(*g), MI300X)

    price = OperatorPrices.__call__
    OperatorPrices.__call__ = lambda prices, text: texts.append(text) or price(prices, text)
    for step in range(5):
        torch.full((7, 3), step + 0.25, device="cuda").mul_(step + 0.5).add_(1, alpha=step)
print(json.dumps({"times": times, "asked": len(texts)}))
