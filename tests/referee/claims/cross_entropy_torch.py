import torch


def cross_entropy(logits, target, ignore_index):
    x = logits.float()
    top = torch.amax(x, dim=1)
    shifted = x - top[:, None]
    log_sum = torch.log(torch.exp(shifted).sum(dim=1))
    ignored = target == ignore_index
    at = target.masked_fill(ignored, 0)
    picked = torch.gather(shifted, 1, at[:, None])[:, 0]
    return (log_sum - picked).masked_fill(ignored, 0.0)
