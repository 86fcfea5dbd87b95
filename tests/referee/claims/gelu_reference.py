import torch


def gelu(x):
    y = x.float()
    inner = 0.7978845608028654 * (y + 0.044715 * torch.pow(y, 3.0))
    return (0.5 * y * (1.0 + torch.tanh(inner))).to(torch.bfloat16)
