import torch
import torch.nn.functional as F


def swiglu(x):
    gate, up = x.chunk(2, dim=1)
    return (F.silu(gate.float()) * up.float()).to(torch.bfloat16)
