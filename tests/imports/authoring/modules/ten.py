"""Ten modules and functions as users write them, each with a generator of inputs."""

import torch
import torch.nn.functional as F
from torch import nn


class RMSNormBlock(nn.Module):
    """RMS normalisation of x plus a residual."""

    def __init__(self, hidden=1024, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps

    def forward(self, x, residual):
        y = (x + residual).float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.eps)
        return (y * self.weight).to(x.dtype)


def rms_inputs(batch=4, seq=512, hidden=1024):
    x = torch.randn(batch, seq, hidden, dtype=torch.float16)
    return x, torch.randn_like(x)


class GatedMLP(nn.Module):
    """down(silu(gate(x)) * up(x)), as in Llama."""

    def __init__(self, hidden=1024, inner=2816):
        super().__init__()
        self.gate = nn.Linear(hidden, inner, bias=False)
        self.up = nn.Linear(hidden, inner, bias=False)
        self.down = nn.Linear(inner, hidden, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


def mlp_inputs(tokens=256, hidden=1024, inner=2816):
    return [torch.randn(tokens, hidden)]


def cached_attention(q, k_cache, v_cache):
    """One token attends to a cache of keys and values with fewer heads."""
    group = q.shape[1] // k_cache.shape[1]
    k = k_cache.repeat_interleave(group, 1)
    v = v_cache.repeat_interleave(group, 1)
    scores = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5
    return scores.softmax(-1) @ v


def cache_inputs(batch=8, past=1024, heads=16, kv_heads=4, head_dim=64):
    q = torch.randn(batch, heads, 1, head_dim)
    k = torch.randn(batch, kv_heads, past, head_dim)
    return {"q": q, "k_cache": k, "v_cache": torch.randn_like(k)}


class ConvBlock(nn.Module):
    """Convolution, batch normalisation with stored statistics, ReLU."""

    def __init__(self, channels_in=32, channels_out=64):
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels_out, 3, padding=1)
        self.norm = nn.BatchNorm2d(channels_out)
        self.training_mode = False

    def forward(self, x):
        y = F.batch_norm(
            self.conv(x),
            self.norm.running_mean,
            self.norm.running_var,
            self.norm.weight,
            self.norm.bias,
        )
        return torch.relu(y)


def conv_inputs(batch=8, channels_in=32, height=56, width=56, channels_out=64):
    return (torch.rand(batch, channels_in, height, width),)


def momentum_step(param, grad, momentum):
    """One step of SGD with momentum, in place."""
    momentum.mul_(0.9).add_(grad)
    param.sub_(momentum, alpha=0.01)


def step_inputs(rows=1024, cols=1024):
    param = torch.randn(rows, cols)
    return param, torch.randn_like(param), torch.randn_like(param)


class FocalLoss(nn.Module):
    """Focal loss of class logits."""

    def __init__(self, gamma=2.0):
        super().__init__()
        self.gamma = gamma

    def forward(self, logits, target):
        log_p = F.log_softmax(logits, dim=-1).gather(1, target[:, None]).squeeze(1)
        return -((1 - log_p.exp()) ** self.gamma * log_p).mean()


def loss_inputs(rows=4096, classes=1000):
    return torch.randn(rows, classes), torch.randint(0, classes, (rows,))


def quantise_tokens(x):
    """Symmetric int8 quantisation of each token; returns codes and scales."""
    scale = x.abs().amax(-1, keepdim=True).clamp(min=1e-8) / 127
    return (x / scale).round().clamp(-127, 127).to(torch.int8), scale


def token_inputs(tokens=1024, hidden=4096):
    return [torch.randn(tokens, hidden)]


class BagOfWords(nn.Module):
    """Sums the embeddings of the words of each bag."""

    def __init__(self, words=10000, width=128):
        super().__init__()
        self.table = nn.Embedding(words, width)

    def forward(self, index):
        return self.table(index).sum(1)


def bag_inputs(bags=1024, length=16, words=10000, width=128):
    return [torch.randint(0, words, (bags, length))]


def decayed_scan(x, decay):
    """Cumulative sum along time of values that a per-channel factor weighs."""
    return torch.cumsum(x * torch.sigmoid(decay), dim=1)


def scan_inputs(batch=8, time=1024, channels=64):
    return torch.randn(batch, time, channels), torch.randn(channels)


class _SquaredReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.relu(x) ** 2

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 2 * torch.relu(x) * gradient


def squared_relu_backward(x, gradient):
    """The gradient of a custom autograd function."""
    x = x.detach().requires_grad_()
    y = _SquaredReLU.apply(x)
    return torch.autograd.grad(y, x, gradient)[0]


def relu_inputs(rows=2048, cols=2048):
    x = torch.randn(rows, cols)
    return x, torch.randn_like(x)
